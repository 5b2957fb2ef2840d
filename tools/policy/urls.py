"""URLs in rules: compares scheme, host, port and path after normalization (RFC 3986, 6.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.core.errors import InvalidArgumentsError
from tools.policy.paths import PathPattern
from tools.sandbox.web.url import Url

ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
ODD = re.compile(r"(?i)%(2f|5c|00|25)|(^|/)(\.|%2e)+;|%(?![0-9a-f]{2})")
"""Path syntax that servers have read as separators or dot segments after another decoding."""

METHODS = re.compile(r"([A-Z]+(?:,[A-Z]+)*)\s+(.*)", re.DOTALL)
EXAMPLE = "such as 'GET https://api.example.com/v1/**'"


@dataclass(frozen=True, slots=True)
class Address:
    """A normalized URL."""

    scheme: str  # http or https
    host: str  # canonical host, as used in requests
    port: int  # the effective port
    path: str  # joined segments, without leading or trailing slash

    @classmethod
    def parse(cls, text: str) -> Address:
        """Normalizes a URL; a ValueError if programs might parse it differently, or not at all."""
        try:
            url = Url.parse(text)
        except InvalidArgumentsError as error:
            raise ValueError(error.message.rstrip(".")) from None
        path = url.target.partition("?")[0]
        if ODD.search(path):
            raise ValueError("its path hides separators or dots")
        path = ESCAPE.sub(_unescape, path).removeprefix("/").removesuffix("/")
        return cls(url.scheme, url.host, url.port, path)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{Url(self.scheme, self.host, self.port, '/').authority}"


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """A URL pattern in a rule."""

    methods: frozenset[str]  # the methods; empty for all
    scheme: str  # http or https
    host: str  # the host; `*.` matches any subdomain, `*` any host
    port: int  # the effective port; 0 for any
    path: PathPattern

    @classmethod
    def parse(cls, text: str) -> UrlPattern:
        """Parses `[METHOD,METHOD ]https://host[:port]/path/**`; a ValueError if it cannot match."""
        found = METHODS.fullmatch(text)
        methods, url = (found[1].split(","), found[2]) if found else ([], text)
        scheme, separator, rest = url.partition("://")
        if not separator or scheme.lower() not in {"http", "https"}:
            raise ValueError(f"{text!r} has to begin with https:// or http://, {EXAMPLE}")
        if "?" in rest or "#" in rest:
            raise ValueError(f"{text!r}: leave out the query, which is not compared, {EXAMPLE}")
        authority, _, path = rest.partition("/")
        wildcard = next((each for each in ("*.", "*") if authority.startswith(each)), "")
        named = authority.removeprefix(wildcard)
        if wildcard == "*" and named and not named.startswith(":"):
            raise ValueError(f"{text!r}: write *.example.com for the hosts below example.com")
        try:
            # The path keeps its wildcards; patterns are normalized like URLs.
            address = Address.parse(f"{scheme}://{'any' if wildcard == '*' else ''}{named}/{path}")
        except ValueError as error:
            raise ValueError(f"{text!r} can match no URL: {error}; write it {EXAMPLE}") from None
        host = "*" if wildcard == "*" else wildcard + address.host
        return cls(
            frozenset(methods),
            address.scheme,
            host,
            address.port,
            PathPattern.parse(address.path or "."),
        )

    def matches(self, method: str, address: Address, *, beneath: bool) -> bool:
        """Returns whether it matches a request; with `beneath`, also of paths below its own."""
        if self.methods and method not in self.methods:
            return False
        if (self.scheme, self.port) != (address.scheme, address.port):
            return False
        is_below = self.host.startswith("*.") and address.host.endswith(self.host[1:])
        if not (is_below or self.host in {"*", address.host}):
            return False
        if beneath:
            return self.path.covers("/".join(filter(None, address.path.split("/"))) or ".")
        return self.path.matches(address.path or ".")


def url_rule(method: str, url: str) -> str:
    """Returns the pattern for a method at the origin of a URL; empty if there is none."""
    try:
        return f"{method} {Address.parse(url).origin}/**"
    except ValueError:
        return ""


def _unescape(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if UNRESERVED.fullmatch(character) else found[0].upper()
