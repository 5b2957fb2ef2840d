"""Converts PDF to text, page by page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

from storage.errors import UnreadableDocumentError

if TYPE_CHECKING:
    from pypdf import PageObject


# Maximum lines of a cell above the end of the previous one; more means another column.
MOST_CELL_LINES = 4
LINE_HEIGHTS = 1.4  # maximum letter heights between two lines of a cell; a new row is lower


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text between two breaks, with its position; y counts upwards."""

    text: str
    x: float
    y: float
    size: float


@dataclass(slots=True)
class _Row:
    """The cells of one row, each with its pieces from top to bottom."""

    cells: list[list[_Piece]] = field(default_factory=list)

    def takes(self, piece: _Piece) -> bool:
        """Adds a piece to the row; returns False if it begins another one."""
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
        continues = abs(piece.x - cell[0].x) <= slack and -rise <= LINE_HEIGHTS * piece.size
        if len(self.cells) > 1 and rise < 0 and continues:
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
    """Returns the text of the pieces, with the cells of each row joined."""
    parts: list[str] = []
    row, kept = _Row(), ""

    def end() -> None:
        nonlocal row, kept
        if row.cells:
            parts.append(row.to_text() + "\n" if len(row.cells) > 1 else kept)
        row, kept = _Row(), ""

    for piece in pieces:
        is_line = piece.text.endswith("\n") and piece.text.strip()
        if is_line and row.takes(piece):
            kept += piece.text
            continue
        end()
        if is_line:
            row.cells.append([piece])
            kept = piece.text
        else:
            parts.append(piece.text)
    end()
    return parts


_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")


def read(data: bytes) -> tuple[str, str, None]:
    """Returns the title in the file's metadata, if any, and its text."""
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(BytesIO(data), strict=False)
    # Files that anyone may open are often encrypted too, with an empty password.
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise UnreadableDocumentError(
            "It is encrypted with a password.", suggestions=("Save a copy without a password.",)
        )
    pages = [page_text(page).strip() for page in reader.pages]
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise UnreadableDocumentError(
            "Its pages contain pictures but no text.",
            suggestions=("Run text recognition (OCR) on it first, for example with ocrmypdf.",),
        )
    title = (reader.metadata and reader.metadata.title) or ""
    return str(title), _HYPHENATED.sub("", text), None
