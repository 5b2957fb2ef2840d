"""Texts with `*` wildcards, compared in linear time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Wildcard"]


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A text in which some places stand for anything.

    Attributes:
        pieces: The texts between the wildcards, each a tuple of characters, where None stands for
            any one character.
    """

    pieces: tuple[tuple[str | None, ...], ...]

    @classmethod
    def parse(cls, text: str, *, single: bool = False) -> Wildcard:
        r"""Reads `*` as any characters; a backslash takes the next character as it is.

        Args:
            text: Such as `*.py` or `\*`.
            single: Whether `?` stands for any one character.
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
        return cls(tuple(map(tuple, pieces)))

    @property
    def is_literal(self) -> bool:
        """Whether it stands for one text alone."""
        return len(self.pieces) == 1 and None not in self.pieces[0]

    def matches(self, text: str) -> bool:
        """Whether it stands for this text."""
        first, *others = self.pieces
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


def _find(piece: tuple[str | None, ...], text: str, start: int) -> int:
    """Where a piece is found first, from `start` on; -1 if nowhere."""
    if None not in piece:
        return text.find("".join(map(str, piece)), start)
    return next((at for at in range(start, len(text)) if _fits(piece, text, at)), -1)


def _fits(piece: tuple[str | None, ...], text: str, at: int) -> bool:
    there = text[at : at + len(piece)]
    return len(there) == len(piece) and all(
        wanted is None or wanted == found for wanted, found in zip(piece, there, strict=True)
    )
