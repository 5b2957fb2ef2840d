"""Texts with `*` wildcards, matched in linear time."""

from __future__ import annotations

from dataclasses import dataclass

Piece = str | tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A text pattern with wildcards.

    Attributes:
        pieces: The texts between the wildcards; one with `?` is a tuple of characters, where None
            matches any single character.
    """

    pieces: tuple[Piece, ...]

    @classmethod
    def parse(cls, text: str, *, single: bool = False) -> Wildcard:
        r"""Parses `*` as any characters; a backslash escapes the next character.

        Args:
            text: Such as `*.py` or `\*`.
            single: Whether `?` matches any single character.
        """
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
            found = _find(piece, text, position)
            if found < 0:
                return False
            position = found + len(piece)
        end = len(text) - len(last)
        return end >= position and _fits(last, text, end)


def _find(piece: Piece, text: str, start: int) -> int:
    """Finds the first match of a piece from `start` on; -1 if there is none."""
    if isinstance(piece, str):
        return text.find(piece, start)
    return next((at for at in range(start, len(text)) if _fits(piece, text, at)), -1)


def _fits(piece: Piece, text: str, at: int) -> bool:
    if isinstance(piece, str):
        return text.startswith(piece, at)
    there = text[at : at + len(piece)]
    return len(there) == len(piece) and all(
        wanted is None or wanted == found for wanted, found in zip(piece, there, strict=True)
    )
