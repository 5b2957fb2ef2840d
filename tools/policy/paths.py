"""Wildcards in rules, matched in linear time, and paths: globs relative to the root."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from tools.sandbox.files.protected_names import folded

Piece = str | tuple[str | None, ...]
PatternT = TypeVar("PatternT")
PartT = TypeVar("PartT")


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A text pattern with wildcards."""

    # The texts between the wildcards; one with `?` is a tuple of characters, where None matches
    # any single character.
    pieces: tuple[Piece, ...]

    @classmethod
    def parse(cls, text: str, *, single: bool = False) -> Wildcard:
        r"""Parses `*` as any characters and, with `single`, `?` as one; a backslash escapes."""
        pieces: list[list[str | None]] = [[]]
        position = 0
        while position < len(text):
            character = text[position]
            if character == "*":
                pieces.append([])
            elif character == "?" and single:
                pieces[-1].append(None)
            else:
                position += character == "\\" and position + 1 < len(text)
                pieces[-1].append(text[position])
            position += 1
        return cls(
            tuple(tuple(each) if None in each else "".join(map(str, each)) for each in pieces)
        )

    @property
    def is_literal(self) -> bool:
        """True if it matches exactly one text."""
        return self.literal is not None

    @property
    def literal(self) -> str | None:
        """The only text it matches; None if there are several."""
        piece = self.pieces[0]
        return piece if len(self.pieces) == 1 and isinstance(piece, str) else None

    def matches(self, text: str) -> bool:
        """Returns whether it matches a text."""
        first, *others = self.pieces
        if not others and isinstance(first, str):
            return text == first
        if not _fits(first, text, 0):
            return False
        if not others:
            return len(text) == len(first)
        position = len(first)
        *middle, last = others
        for piece in middle:
            if isinstance(piece, str):
                found = text.find(piece, position)
            else:
                places = range(position, len(text))
                found = next((at for at in places if _fits(piece, text, at)), -1)
            if found < 0:
                return False
            position = found + len(piece)
        end = len(text) - len(last)
        return end >= position and _fits(last, text, end)


def _fits(piece: Piece, text: str, at: int) -> bool:
    if isinstance(piece, str):
        return text.startswith(piece, at)
    there = text[at : at + len(piece)]
    return len(there) == len(piece) and all(
        wanted is None or wanted == found for wanted, found in zip(piece, there, strict=True)
    )


ANY_DEPTH = None  # `**`: any number of components


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


def relative_path(path: str, roots: Sequence[str]) -> str | None:
    """Normalizes a path relative to the root, without resolving links; None if it leads out."""
    if path.startswith("/"):
        absolute = "/" + posixpath.normpath(path).lstrip("/")
        for root in roots:
            if absolute == root or absolute.startswith(root.rstrip("/") + "/"):
                return absolute[len(root) :].strip("/") or "."
        return None
    if path and "/" not in path and path not in {".", ".."}:
        return path
    normal = posixpath.normpath(path)
    return None if normal == ".." or normal.startswith("../") else normal


def _parts(path: str) -> list[str]:
    return [] if path == "." else path.split("/")


@lru_cache(maxsize=64)
def _folded_parts(path: str) -> tuple[str, ...]:
    return tuple(map(folded, _parts(path)))


def _wildcard(part: str) -> Wildcard | None:
    return ANY_DEPTH if part == "**" else Wildcard.parse(part, single=True)


def matches_sequence(
    pattern: Sequence[PatternT | None],
    parts: Sequence[PartT],
    fits: Callable[[PatternT, PartT], bool],
    *,
    beneath: bool = False,  # whether it is enough to match the first parts
) -> bool:
    """Matches parts with patterns, of which None stands for any number of parts.

    It goes back to the last None only, which is enough for globs.
    """
    at = place = 0
    back: tuple[int, int] | None = None
    while place < len(parts):
        if at < len(pattern):
            wanted = pattern[at]
            if wanted is None:
                back = (at, place)
                at += 1
                continue
            if fits(wanted, parts[place]):
                at, place = at + 1, place + 1
                continue
        elif beneath:
            return True
        if back is None:
            return False
        back = (back[0], back[1] + 1)
        at, place = back[0] + 1, back[1]
    return all(rest is None for rest in pattern[at:])
