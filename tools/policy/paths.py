"""Paths and URLs in rules: globs relative to the root, and normalized addresses (RFC 3986)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tools.core.errors import InvalidArgumentsError
from tools.policy.shell.words import Wildcard, matches_sequence
from tools.sandbox.files.protect import folded
from tools.sandbox.web.url import Url

ANY_DEPTH = None  # `**`: any number of components

ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
ODD = re.compile(r"(?i)%(2f|5c|00|25)|(^|/)(\.|%2e)+;|%(?![0-9a-f]{2})")
"""Path syntax that servers have read as separators or dot segments after another decoding."""

METHODS = re.compile(r"([A-Z]+(?:,[A-Z]+)*)\s+(.*)", re.DOTALL)
EXAMPLE = "such as 'GET https://api.example.com/v1/**'"


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A path pattern in a rule."""

    # A pattern for each component; None matches any number of components.
    components: tuple[Wildcard | None, ...]
    # The same without case and Unicode forms, for deny and ask rules.
    folded: tuple[Wildcard | None, ...]
    # Prefixes for compared paths: the spellings of the root if the rule has an absolute path,
    # else empty.
    roots: tuple[tuple[str, ...], ...] = ((),)

    @classmethod
    def parse(cls, text: str, roots: Sequence[str] = ()) -> PathPattern:
        """Parses `*`, `?` (within a component) and `**`; a ValueError says why it cannot match."""
        parts = [part for part in text.split("/") if part not in {"", "."}]
        if ".." in parts:
            raise ValueError(f"{text!r} contains .., which no path does; such as 'src/**'")
        if text == "~" or text.startswith("~/"):
            raise ValueError(f"{text!r}: write the home directory out, or a path from the root")
        for part in parts:
            if "**" in part and part != "**":
                raise ValueError(f"in {text!r}, ** has to be a whole component, such as 'src/**'")
        components = tuple(map(_wildcard, parts))
        forgiving = tuple(
            Wildcard((folded(wanted.literal),))
            if wanted is not None and wanted.literal is not None
            else _wildcard(folded(part))
            for part, wanted in zip(parts, components, strict=True)
        )
        if not text.startswith("/"):
            return cls(components, forgiving)
        prefixes = tuple(tuple(filter(None, root.split("/"))) for root in roots)
        return cls(components, forgiving, prefixes)

    @property
    def first(self) -> str | None:
        """The `first_component` shared by all paths it matches; None if they differ."""
        wanted = self.folded[0] if self.folded and self.roots == ((),) else None
        return None if wanted is None else wanted.literal

    def matches(self, path: str) -> bool:
        """Returns whether it matches this normalized relative path."""
        parts = _parts(path)
        return any(
            matches_sequence(self.components, [*root, *parts], Wildcard.matches)
            for root in self.roots
        )

    def covers(self, path: str) -> bool:
        """Returns whether it matches the path or a parent, ignoring case and Unicode form."""
        parts = _folded_parts(path)
        return any(
            matches_sequence(
                self.folded, [*map(folded, root), *parts], Wildcard.matches, beneath=True
            )
            for root in self.roots
        )

    @property
    def is_absolute(self) -> bool:
        """True if it was written as an absolute path."""
        return self.roots != ((),)

    def begin(self) -> frozenset[int]:
        """Returns the matching state at the start of a walk; see `descend`."""
        return self._reached({0})

    def descend(self, reached: frozenset[int], name: str) -> frozenset[int]:
        """Advances the state by a name, compared as in `covers`; empty if none is covered below."""
        found, called = set[int](), folded(name)
        for at in reached - {len(self.folded)}:
            wanted = self.folded[at]
            if wanted is None or wanted.matches(called):
                found.add(at if wanted is None else at + 1)
        return self._reached(found)

    def is_covering(self, reached: frozenset[int]) -> bool:
        """Returns whether it covers the current path of a walk."""
        return len(self.folded) in reached

    def _reached(self, places: set[int]) -> frozenset[int]:
        found = set(places)
        for at in range(len(self.folded)):  # `**` also matches no component
            if at in found and self.folded[at] is ANY_DEPTH:
                found.add(at + 1)
        return frozenset(found)


def first_component(path: str) -> tuple[str, ...]:
    """Returns the first component without case and Unicode forms; empty for the root itself."""
    return _folded_parts(path)[:1]


def path_rule(path: str) -> str:
    """Returns the pattern for exactly one path; empty if there is none."""
    if path != path.strip() or not path.isprintable():
        return ""
    # A leading ./ keeps it from being parsed as name=value or as a URL.
    return "./" + re.sub(r"[\\*?'\"|&;]", r"\\\g<0>", path)


def _parts(path: str) -> list[str]:
    return [] if path == "." else path.split("/")


@lru_cache(maxsize=64)
def _folded_parts(path: str) -> tuple[str, ...]:
    return tuple(map(folded, _parts(path)))


def _wildcard(part: str) -> Wildcard | None:
    return ANY_DEPTH if part == "**" else Wildcard.parse(part, single=True)


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
