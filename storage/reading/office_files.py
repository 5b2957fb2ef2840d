"""Converts PDF to text, page by page, and DOCX to Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING
from zipfile import ZipFile

from storage.errors import UnreadableDocumentError

if TYPE_CHECKING:
    from docx.blkcntnr import BlockItemContainer
    from docx.document import Document
    from docx.table import Table
    from docx.text.paragraph import Paragraph
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
        text: str, cm: Sequence[float], tm: Sequence[float], _font: object, size: float
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


def read_pdf(data: bytes) -> tuple[str, str, None]:
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


# Maximum bytes that an archive's files may have in total; zipfile stops at what each declares.
MAX_UNPACKED_BYTES = 300_000_000
_NO_MEMORY = (0, 2)  # libxml2's error codes without details, and XML_ERR_NO_MEMORY
_MAIN_PART = "word/document.xml"
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_DEEPEST_HEADING = 6


def read_docx(data: bytes) -> tuple[str, str, None]:
    """Returns the title in the file's metadata, if any, and its text as Markdown."""
    _check_archive(data)
    import docx

    try:
        document = docx.Document(BytesIO(data))
    except SyntaxError as error:  # the base class of lxml's errors
        if getattr(error, "code", None) in _NO_MEMORY:
            raise MemoryError from error
        raise
    text = "\n".join(_block_lines(document))
    return document.core_properties.title, re.sub(r"\n{3,}", "\n\n", text).strip(), None


def _check_archive(data: bytes) -> None:
    with ZipFile(BytesIO(data)) as archive:
        files = archive.infolist()
    if not any(file.filename == _MAIN_PART for file in files):
        raise UnreadableDocumentError(
            "It is an archive or an Office file other than a Word document.",
            suggestions=("Unpack it, or save it as .docx, .pdf, .csv or plain text.",),
        )
    size = sum(file.file_size for file in files)
    if size > MAX_UNPACKED_BYTES:
        raise UnreadableDocumentError(
            f"It unpacks to {size:,} bytes; at most {MAX_UNPACKED_BYTES:,} are read.",
            suggestions=("Save the document without its pictures, or as plain text.",),
        )


def _block_lines(container: Document | BlockItemContainer) -> Iterator[str]:
    """Yields the container's lines, with blank lines around everything but list items."""
    from docx.table import Table

    in_list = False
    for block in container.iter_inner_content():
        if isinstance(block, Table):
            yield from ("", *_rows(block), "")
            continue
        prefix = _prefix(block)
        if in_list and prefix != "- ":
            yield ""
        in_list = prefix == "- "
        text = block.text.strip()
        if text:
            yield prefix + (" ".join(text.split()) if prefix else text)
        if not in_list:
            yield ""


def _prefix(paragraph: Paragraph) -> str:
    style = (paragraph.style and paragraph.style.name) or ""
    if heading := _HEADING.match(style):
        return "#" * min(max(int(heading[1]), 1), _DEEPEST_HEADING) + " "
    if style == "Title":
        return "# "
    properties = paragraph._p.pPr  # noqa: SLF001  # python-docx has no public name for numbering
    is_item = properties is not None and properties.numPr is not None
    return "- " if is_item or style.startswith("List") else ""


def _rows(table: Table) -> Iterator[str]:
    for row in table.rows:
        # A merged cell is returned once for each column that it spans.
        cells = {id(cell._tc): cell for cell in row.cells}  # noqa: SLF001  # the cell's identity
        texts = (" ".join(" ".join(_block_lines(cell)).split()) for cell in cells.values())
        yield "| " + " | ".join(texts) + " |"
