"""URLs in rules: scheme, host, port and path, each compared after normalisation (RFC 3986, 6.2)."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

from tools.core.policy.paths import PathPattern

__all__ = ["Address", "UrlPattern", "url_rule"]

PORTS = {"http": 80, "https": 443}
URL = re.compile(r"(?i)(https?)://([^/?#]*)([^?#]*)(?:\?[^#]*)?(?:#.*)?")
AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@%]+)(?::([0-9]{0,5}))?")
HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
NUMBERS = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}")
"""Hosts that an inet_aton takes for an IPv4 address, canonical or not."""

ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
ODD_SEGMENT = re.compile(r"(?i)%(2f|5c|00|25)|^\.+;")
"""Segments in which servers have seen separators or dot segments after one more decoding."""

METHODS = re.compile(r"([A-Z]+(?:,[A-Z]+)*)\s+(.*)", re.DOTALL)
EXAMPLE = "such as 'GET https://api.example.com/v1/**'"


@dataclass(frozen=True, slots=True)
class Address:
    """A URL, normalised.

    Attributes:
        scheme: http or https.
        host: Lower case, in ASCII, without a trailing dot; IP addresses in their canonical form.
        port: The effective one.
        path: Segments, joined, without the leading slash and without dot segments.
    """

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Normalises a URL.

        Raises:
            ValueError: If programs might not agree on what it means.
        """
        if "\\" in url or any(
            ord(character) <= 0x20 or ord(character) == 0x7F for character in url
        ):
            raise ValueError("it has blanks, control characters or backslashes")
        found = URL.fullmatch(url)
        if found is None:
            raise ValueError("it is no http or https URL")
        scheme = found[1].lower()
        if "@" in found[2]:
            raise ValueError("it names a user before the host")
        authority = AUTHORITY.fullmatch(found[2])
        if authority is None:
            raise ValueError("its host cannot be read")
        port = int(authority[2] or PORTS[scheme])
        if port > 65_535:
            raise ValueError("there is no such port")
        return cls(scheme, _host(authority[1]), port, _path(found[3]))

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """A URL in a rule.

    Attributes:
        methods: Which methods it is about; empty for all.
        scheme: http or https.
        host: The host; after `*.` any host below it; `*` any host.
        port: The effective port; 0 for any.
        path: The path.
    """

    methods: frozenset[str]
    scheme: str
    host: str
    port: int
    path: PathPattern

    @classmethod
    def parse(cls, text: str) -> UrlPattern:
        """Reads `[METHOD,METHOD ]https://host[:port]/path/**`.

        Raises:
            ValueError: If it can never match.
        """
        found = METHODS.fullmatch(text)
        methods, url = (found[1].split(","), found[2]) if found else ([], text)
        scheme, separator, rest = url.partition("://")
        if not separator or scheme.lower() not in PORTS:
            raise ValueError(f"{text!r} has to begin with https:// or http://, {EXAMPLE}")
        if "?" in rest or "#" in rest:
            raise ValueError(f"{text!r}: leave out the query, which is not compared, {EXAMPLE}")
        authority, slash, path = rest.partition("/")
        wildcard = next((each for each in ("*.", "*") if authority.startswith(each)), "")
        named = authority.removeprefix(wildcard)
        if wildcard == "*" and named and not named.startswith(":"):
            raise ValueError(f"{text!r}: write *.example.com for the hosts below example.com")
        try:
            # The path keeps its wildcards; what is normal in a URL is normal in a pattern.
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
        """Whether it names a request.

        Args:
            method: In upper case.
            address: What is asked.
            beneath: Whether what lies beneath the path is meant too.
        """
        if self.methods and method not in self.methods:
            return False
        if (self.scheme, self.port) != (address.scheme, address.port):
            return False
        if not self._fits_host(address.host):
            return False
        if beneath:
            return self.path.covers(_merged(address.path))
        return self.path.matches(address.path or ".")

    def _fits_host(self, host: str) -> bool:
        if self.host == "*":
            return True
        if self.host.startswith("*."):
            return host.endswith(self.host[1:])
        return host == self.host


def url_rule(method: str, url: str) -> str:
    """The pattern that stands for a method at the origin of a URL; empty where none can."""
    try:
        return f"{method} {Address.parse(url).origin}/**"
    except ValueError:
        return ""


def _host(text: str) -> str:
    host = text.lower()
    if host.startswith("["):
        return ipaddress.IPv6Address(host[1:-1]).compressed
    if not host.isascii():
        host = _punycode(host)
    host = host.removesuffix(".")
    if NUMBERS.fullmatch(host):
        if socket.inet_ntoa(socket.inet_aton(host)) != host:
            raise ValueError("its address is written in an odd form")
        return host
    if not HOST.fullmatch(host) or len(host) > 253:
        raise ValueError("its host is no name")
    return host


def _punycode(host: str) -> str:
    import idna  # noqa: PLC0415  # only for hosts that are not ASCII

    try:
        return idna.encode(host, uts46=True, transitional=False).decode("ascii")
    except idna.IDNAError:
        raise ValueError("its host is no name") from None


def _path(text: str) -> str:
    """Removes dot segments, and escapes of characters that need none."""
    segments: list[str] = []
    parts = ESCAPE.sub(_unescape, text).removeprefix("/").split("/")
    for place, part in enumerate(parts):
        if ODD_SEGMENT.search(part):
            raise ValueError("its path hides separators or dots")
        if part == "..":
            segments = segments[:-1]
        elif part != ".":
            segments.append(part)
            continue
        if place == len(parts) - 1:
            segments.append("")
    return "/".join(segments)


def _unescape(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if UNRESERVED.fullmatch(character) else found[0].upper()


def _merged(path: str) -> str:
    """The path as servers see it that take several slashes for one."""
    return "/".join(part for part in path.split("/") if part) or "."
