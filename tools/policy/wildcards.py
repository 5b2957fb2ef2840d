"""Texts with `*` wildcards, compared in linear time."""

from __future__ import annotations

from dataclasses import dataclass

Piece = str | tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A text in which some places stand for anything.

    Attributes:
        pieces: The texts between the wildcards; one with `?` is a tuple of characters, where None
            stands for any one character.
    """

    pieces: tuple[Piece, ...]

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
        return cls(
            tuple(tuple(each) if None in each else "".join(map(str, each)) for each in pieces)
        )

    @property
    def is_literal(self) -> bool:
        """Whether it stands for one text alone."""
        return self.literal is not None

    @property
    def literal(self) -> str | None:
        """The one text that it stands for; None where there are more."""
        piece = self.pieces[0]
        return piece if len(self.pieces) == 1 and isinstance(piece, str) else None

    def matches(self, text: str) -> bool:
        """Whether it stands for this text."""
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
    """Where a piece is found first, from `start` on; -1 if nowhere."""
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
