"""The text of a PDF page in which each row of a table is one line, its cells divided by bars.

A PDF has no tables, only pieces of text and where they stand. Programs write a table row by row and
a row cell by cell, so a piece that follows another to its right and no lower is the next cell of
its row, and one beneath it at the same place goes on with the cell. The columns of a text are
written one after the other: the next one begins many lines above the last piece, and is no cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdf import PageObject

MOST_CELL_LINES = 4
"""Lines that a cell may have above the end of the one before it: more is another column."""

LINE_HEIGHTS = 1.4
"""Heights of its letters that the next line of a cell is lower at most; a new row is lower."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text between two breaks, and where it begins; y counts upwards."""

    text: str
    x: float
    y: float
    size: float


@dataclass(slots=True)
class _Row:
    """Cells of one row, each the pieces that stand beneath each other in it."""

    cells: list[list[_Piece]] = field(default_factory=list)

    def takes(self, piece: _Piece) -> bool:
        """Puts a piece into the row; False where it begins another one."""
        if not self.cells or not piece.size:
            return False
        cell = self.cells[-1]
        last, slack = cell[-1], piece.size / 4
        rise = piece.y - last.y
        if piece.x > cell[0].x + piece.size and rise >= -slack:
            if rise > MOST_CELL_LINES * LINE_HEIGHTS * piece.size:
                return False
            self.cells.append([piece])
            return True
        goes_on = abs(piece.x - cell[0].x) <= slack and -rise <= LINE_HEIGHTS * piece.size
        if len(self.cells) > 1 and rise < 0 and goes_on:
            cell.append(piece)
            return True
        return False

    def to_text(self) -> str:
        cells = (" ".join(" ".join(piece.text.split()) for piece in cell) for cell in self.cells)
        return " | ".join(cells)


def page_text(page: PageObject) -> str:
    """Returns the text of a page; a row of a table is one line."""
    pieces: list[_Piece] = []

    def visit(
        text: str,
        cm: Sequence[float],
        tm: Sequence[float],
        _font: object,
        size: float,
    ) -> None:
        if text:
            x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
            y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
            scale = abs(tm[3] * cm[3]) or abs(tm[1] * cm[2])
            pieces.append(_Piece(text, x, y, abs(size) * (scale or 1)))

    whole = page.extract_text(visitor_text=visit)
    if "".join(piece.text for piece in pieces) != whole:
        return whole
    return "".join(_lines(pieces))


def _lines(pieces: Sequence[_Piece]) -> list[str]:
    """The text of the pieces, in which the cells of a row are joined; all else as it is."""
    parts: list[str] = []
    row, kept = _Row(), ""

    def end() -> None:
        nonlocal row, kept
        if row.cells:
            parts.append(row.to_text() + "\n" if len(row.cells) > 1 else kept)
        row, kept = _Row(), ""

    for piece in pieces:
        stands_alone = piece.text.endswith("\n") and piece.text.strip()
        if stands_alone and row.takes(piece):
            kept += piece.text
            continue
        end()
        if stands_alone:
            row.cells.append([piece])
            kept = piece.text
        else:
            parts.append(piece.text)
    end()
    return parts
