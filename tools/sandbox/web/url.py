"""URLs of the web, read strictly: what is judged is what is asked for."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.hosts import canonical_host, parse_port

MAX_URL = 8_000
"""Characters (RFC 9110, 4.1 recommends that 8000 be supported)."""

DEFAULT_PORTS = {"http": 80, "https": 443}

_SHAPE = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<slashes>/*)(?P<authority>[^/?#]*)"
    r"(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?:#.*)?",
    re.IGNORECASE,
)
_DOT_SEGMENT = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?=/|$)", re.IGNORECASE)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_KEPT = "/%:@!$&'()*+,;=~?[]|"
"""What stands in a path or a query as it was given, besides letters, digits and `_.-`."""

SHOWN = 200
"""Characters of a wrong URL that its error repeats."""


@dataclass(frozen=True, slots=True)
class Url:
    """An address on the web.

    Attributes:
        scheme: http or https.
        host: Canonical, an IPv6 address without brackets.
        port: From 1 to 65535.
        target: Path and query, percent-encoded; it begins with a slash.
    """

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> Url:
        """Reads a URL; its fragment is left out."""
        _check_characters(text)
        shape = _SHAPE.fullmatch(text)
        if shape is None or not shape["authority"] or shape["slashes"] != "//":
            if shape is not None and shape["scheme"].lower() not in DEFAULT_PORTS:
                raise _wrong_scheme(text)
            raise _wrong(text, "is no URL", "Write https://host/path.")
        scheme = shape["scheme"].lower()
        if scheme not in DEFAULT_PORTS:
            raise _wrong_scheme(text)
        host, port = _authority(text, shape["authority"], DEFAULT_PORTS[scheme])
        path = shape["path"] or "/"
        if _DOT_SEGMENT.search(path):
            raise _wrong(text, "has . or .. in its path", "Write the path that is meant.")
        return cls(scheme, host, port, quote(path + (shape["query"] or ""), safe=_KEPT))

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: what a credential is for (RFC 6454)."""
        return self.scheme, self.host, self.port

    @property
    def bracketed(self) -> str:
        """The host, an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def host_port(self) -> str:
        """Host and port, as the setting requests.private has them."""
        return f"{self.bracketed}:{self.port}"

    @property
    def authority(self) -> str:
        """Host, and port where it is not the scheme's own, as the Host header has them."""
        return self.bracketed if self.port == DEFAULT_PORTS[self.scheme] else self.host_port

    def join(self, reference: str) -> Url:
        """Where a reference leads from here (RFC 3986, 5)."""
        if _ABSOLUTE.match(reference):  # which urljoin takes for relative where its host is missing
            return Url.parse(reference)
        if reference.startswith("//"):
            return Url.parse(f"{self.scheme}:{reference}")
        _check_characters(reference)
        return Url.parse(urljoin(str(self), reference))

    def is_same_site(self, other: Url) -> bool:
        """Whether another URL is on the same server, with or without `www.`, or on its HTTPS."""
        if self.host.removeprefix("www.") != other.host.removeprefix("www."):
            return False
        is_upgrade = (self.scheme, self.port, other.scheme, other.port) == (
            "http",
            80,
            "https",
            443,
        )
        return is_upgrade or (self.scheme, self.port) == (other.scheme, other.port)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def _check_characters(text: str) -> None:
    """Refuses what may end a line, hide, or be read differently elsewhere."""
    if len(text) > MAX_URL:
        raise _wrong(text, f"has {len(text)} characters", f"Give one of at most {MAX_URL}.")
    odd = next((each for each in text if unicodedata.category(each)[0] in "CZ"), None)
    if odd is not None:
        raise _wrong(text, f"holds the character {odd!r}", "Percent-encode it, or leave it out.")
    if "\\" in text:
        raise _wrong(text, "holds a backslash", "Write slashes, or %5C in a path.")


def _authority(text: str, authority: str, default: int) -> tuple[str, int]:
    if "@" in authority:
        raise _wrong(
            text.replace(authority.rpartition("@")[0] + "@", "***@", 1),
            "holds user information",
            "Leave it out; send credentials in the header Authorization.",
        )
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        return canonical_host(authority), default
    return canonical_host(host), parse_port(port)


def _wrong_scheme(text: str) -> InvalidArgumentsError:
    return _wrong(text, "is not one of http or https", "Give a URL that begins with https://.")


def _wrong(text: str, wrong: str, advice: str) -> InvalidArgumentsError:
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    return InvalidArgumentsError(f"The URL {shown!r} {wrong}.", next_actions=[advice])
