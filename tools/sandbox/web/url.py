"""Web URLs, parsed strictly, so that the checked URL is requested; headers of requests."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from storage.index.bounded import clip
from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.hosts import host_and_port

MAX_URL = 8_000  # maximum length (RFC 9110, 4.1 recommends supporting 8000)
DEFAULT_PORTS = {"http": 80, "https": 443}

_SHAPE = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<slashes>/*)(?P<authority>[^/?#]*)"
    r"(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?:#.*)?",
    re.IGNORECASE,
)
_DOT_SEGMENT = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?=/|$)", re.IGNORECASE)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_KEPT = "/%:@!$&'()*+,;=~?[]|"
"""Characters kept in a path or query, in addition to letters, digits and `_.-`."""

SHOWN = 200  # limit on the characters of a wrong URL that its error repeats


@dataclass(frozen=True, slots=True)
class Url:
    """A web URL."""

    scheme: str
    host: str  # canonical host, an IPv6 address without brackets
    port: int
    target: str  # path and query, percent-encoded, with a leading slash

    @classmethod
    def parse(cls, text: str) -> Url:
        """Parses a URL, dropping its fragment."""
        _check_characters(text)
        shape = _SHAPE.fullmatch(text)
        scheme = "" if shape is None else shape["scheme"].lower()
        if scheme and scheme not in DEFAULT_PORTS:
            advice = "Give a URL that begins with https://."
            raise _wrong(text, "is not one of http or https", advice)
        if shape is None or not shape["authority"] or shape["slashes"] != "//":
            raise _wrong(text, "is not a URL", "Write https://host/path.")
        host, port = _authority(text, shape["authority"], DEFAULT_PORTS[scheme])
        path = shape["path"] or "/"
        if _DOT_SEGMENT.search(path):
            raise _wrong(text, "has . or .. in its path", "Write the path that is meant.")
        return cls(scheme, host, port, quote(path + (shape["query"] or ""), safe=_KEPT))

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: the scope of credentials (RFC 6454)."""
        return self.scheme, self.host, self.port

    @property
    def bracketed(self) -> str:
        """The host, with an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def host_port(self) -> str:
        """Host and port, as in the setting requests.private."""
        return f"{self.bracketed}:{self.port}"

    @property
    def authority(self) -> str:
        """Host, with the port unless it is the default, as in the Host header."""
        return self.bracketed if self.port == DEFAULT_PORTS[self.scheme] else self.host_port

    def join(self, reference: str) -> Url:
        """Resolves a reference (RFC 3986, 5)."""
        if _ABSOLUTE.match(reference):  # urljoin treats it as relative if the host is missing
            return Url.parse(reference)
        if reference.startswith("//"):
            return Url.parse(f"{self.scheme}:{reference}")
        _check_characters(reference)
        return Url.parse(urljoin(str(self), reference))

    def is_same_site(self, other: Url) -> bool:
        """Returns whether a URL is on the same server, ignoring `www.` and an upgrade to HTTPS."""
        if self.host.removeprefix("www.") != other.host.removeprefix("www."):
            return False
        way, other_way = (self.scheme, self.port), (other.scheme, other.port)
        return way == other_way or (way == ("http", 80) and other_way == ("https", 443))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def _check_characters(text: str) -> None:
    """Rejects characters that may end a line, hide, or be read differently elsewhere."""
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
    return host_and_port(authority, default)


def _wrong(text: str, wrong: str, advice: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"The URL {clip(text, SHOWN)!r} {wrong}.", next_actions=[advice])


RequestHeaders = tuple[tuple[str, str], ...]

MAX_HEADERS = 64
MAX_HEADER_BYTES = 32_768

OURS = frozenset(
    {
        "accept-encoding",  # only what can be decompressed within bounds
        *("connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "te"),
        *("trailer", "transfer-encoding", "upgrade", "via"),
    }
)
"""Headers that frame or route a message, which callers may not set (RFC 9110, 7)."""

_HARMLESS = frozenset({"accept", "accept-language", "content-language", "content-type"})
"""Headers that fetch lets any page send anywhere; others may be secrets."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")  # RFC 9110, 5.5


def checked_headers(headers: Mapping[str, str] | None) -> RequestHeaders:
    """Checks a caller's headers."""
    given = tuple((name, value.strip(" \t")) for name, value in (headers or {}).items())
    size = sum(len(name) + len(value) + 4 for name, value in given)
    if len(given) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise InvalidArgumentsError(
            f"There are {len(given)} headers of {size} bytes.",
            next_actions=[f"Give at most {MAX_HEADERS}, of {MAX_HEADER_BYTES} bytes together."],
        )
    for name, value in given:
        _check(name, value)
    names = [name.lower() for name, _ in given]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InvalidArgumentsError(
            f"The header {twice!r} is given twice.", next_actions=["Give it once."]
        )
    return given


def for_another_origin(headers: RequestHeaders) -> RequestHeaders:
    """Returns the headers that another origin may see: none that may be credentials."""
    return tuple(each for each in headers if each[0].lower() in _HARMLESS)


def without_body(headers: RequestHeaders) -> RequestHeaders:
    """Returns the headers for repeating a request without its body (RFC 9110, 15.4)."""
    return tuple(each for each in headers if not each[0].lower().startswith("content-"))


def _check(name: str, value: str) -> None:
    lowered = name.lower()
    if not _TOKEN.fullmatch(name):
        raise InvalidArgumentsError(
            f"The header name {name[:100]!r} is not valid.",
            next_actions=["Use letters, digits and hyphens, without a colon or a line end."],
        )
    if lowered in OURS or lowered.startswith("proxy-"):
        raise InvalidArgumentsError(
            f"The header {name!r} is set for you.", next_actions=[f"Leave {name!r} out."]
        )
    if not _VALUE.fullmatch(value):
        raise InvalidArgumentsError(
            f"The value of the header {name!r} holds a line end, a control or a character beyond "
            "Latin-1.",
            next_actions=["Give one line of plain text; percent-encode anything else."],
        )
