"""Converts PDF to text, page by page, and DOCX to Markdown."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from storage.errors import UnreadableDocumentError
from storage.reading.content import (
    Attachment,
    Content,
    core_title,
    encryption_error,
    parse_xml,
    parts_of,
    table_row,
)

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader


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


DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_OCR_MISSING = (
    'Install text recognition (OCR): pip install "toolcrib[ocr]".',
    "Or run it on the file first, for example with ocrmypdf.",
)
OCR_DPI = 150
OCR_PIXELS = 1280  # the longer side of what lines are looked for in
OCR_SECONDS = 60.0  # processor time; a page takes one or two
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")


def read_pdf(data: bytes) -> Content:
    """Reads the pages of a PDF and the values of its form."""
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(BytesIO(data), strict=False)
    # Files that anyone may open are often encrypted too, with an empty password.
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise encryption_error()
    pages = [page_text(page).strip() for page in reader.pages]
    scanned = [
        number
        for number, page in enumerate(reader.pages)
        if not pages[number] and "/XObject" in page.get("/Resources", {})
    ]
    read = _recognize(data, scanned) if scanned else {}
    for number, found in read.items():
        pages[number] = found
    text = "\n\n".join(filter(None, (*pages, _form(reader))))
    if scanned and not text:
        raise UnreadableDocumentError(
            "Its pages contain pictures but no text.",
            suggestions=("Add a text that describes it.",) if read else _OCR_MISSING,
        )
    left = len(scanned) - len(read)
    notes = (f"{left} of its {len(pages)} pages are pictures that were not read.",) if left else ()
    title = (reader.metadata and reader.metadata.title) or ""
    return Content(_HYPHENATED.sub("", text), str(title), notes=notes)


def _recognize(data: bytes, pages: Sequence[int]) -> dict[int, str]:
    """Recognizes the text of pages that are pictures, while there is time; by page number."""
    try:
        import pypdfium2
        from rapidocr import RapidOCR
    except ImportError:
        return {}
    # With smaller pictures and batches than by default, it keeps to the memory of a reader.
    engine: Any = RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Det.limit_type": "max",
            "Det.limit_side_len": OCR_PIXELS,
            "Rec.rec_batch_num": 2,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.enable_cpu_mem_arena": False,
        }
    )
    found: dict[int, str] = {}
    document = pypdfium2.PdfDocument(data)
    until = time.process_time() + OCR_SECONDS
    for number in pages:
        if time.process_time() > until:
            break
        page = document[number]
        scale = min(OCR_DPI / 72, 2 * OCR_PIXELS / max(page.get_size()))
        lines = engine(page.render(scale=scale).to_numpy()).txts or ()
        found[number] = "\n".join(lines)
    return found


def _form(reader: PdfReader) -> str:
    """Returns the filled fields of a form, which are not part of the text of its pages."""
    lines = []
    for name, each in (reader.get_fields() or {}).items():
        value = each.value
        if isinstance(value, str) and value.strip() and value != "/Off":
            label = str(each.alternate_name or name.rpartition(".")[2])
            lines.append(f"{label}: {value.removeprefix('/')}")
    return "\n".join(lines)


_DEEPEST_HEADING = 6
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_WRAPPERS = {"sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag"}
_FURTHER = ("footnotes", "endnotes", "comments")


def read_docx(archive: ZipFile, main: str) -> Content:
    """Reads a Word document, a template or one with macros, with its notes and comments."""
    related = parts_of(archive, main).values()
    parts = dict(related)
    styles: dict[str, str] = {}
    if "styles" in parts:
        for each in parse_xml(archive.read(parts["styles"])).iterfind("{*}style"):
            styles[_value(each, "styleId")] = _value(each.find("{*}name"))
    body = parse_xml(archive.read(main)).find("{*}body")
    sections = ["\n".join(_word_lines(body, styles))]
    for kind in _FURTHER:
        if kind in parts:
            notes = (_word_lines(note, styles) for note in parse_xml(archive.read(parts[kind])))
            lines = "\n".join(filter(None, (" ".join(note).strip() for note in notes)))
            sections.append(f"## {kind.capitalize()}\n\n{lines}" if lines else "")
    text = re.sub(r"\n{3,}", "\n\n", "\n\n".join(sections)).strip()
    # Whole documents that Word merges into this one, or shows as icons.
    inner = sorted(path for kind, path in related if kind in {"aFChunk", "package"})
    attachments = [Attachment(path.rpartition("/")[2], archive.read(path)) for path in inner]
    return Content(text, core_title(archive), DOCX, attachments=tuple(attachments))


def _name(element: Any) -> str:  # noqa: ANN401  # lxml has no types
    """Returns the name of an element without its namespace; there are two, strict and usual."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _value(element: Any, name: str = "val") -> str:  # noqa: ANN401  # lxml has no types
    """Returns an attribute in any namespace; empty without it."""
    items = () if element is None else element.items()
    return next((value for key, value in items if key.rpartition("}")[2] == name), "")


def _blocks(parent: Any) -> Iterator[Any]:  # noqa: ANN401  # lxml has no types
    """Yields the paragraphs and tables of an element, also those inside content controls."""
    for child in parent:
        if _name(child) in _WRAPPERS:
            yield from _blocks(child)
        elif _name(child) in {"p", "tbl"}:
            yield child


def _word_lines(parent: Any, styles: dict[str, str]) -> Iterator[str]:  # noqa: ANN401  # lxml has no types
    """Yields the lines of an element, with blank lines around everything but list items."""
    in_list = False
    for block in _blocks(parent):
        if _name(block) == "tbl":
            yield from ("", *_rows(block, styles), "")
            continue
        prefix = _prefix(block, styles)
        if in_list and prefix != "- ":
            yield ""
        in_list = prefix == "- "
        text = _word_text(block).strip()
        if text:
            yield prefix + (" ".join(text.split()) if prefix else text)
        if not in_list:
            yield ""


def _prefix(paragraph: Any, styles: dict[str, str]) -> str:  # noqa: ANN401  # lxml has no types
    style = styles.get(_value(paragraph.find("{*}pPr/{*}pStyle")), "")
    if heading := _HEADING.match(style):
        return "#" * min(max(int(heading[1]), 1), _DEEPEST_HEADING) + " "
    if style == "Title":
        return "# "
    is_item = paragraph.find("{*}pPr/{*}numPr") is not None
    return "- " if is_item or style.startswith("List") else ""


def _rows(table: Any, styles: dict[str, str]) -> Iterator[str]:  # noqa: ANN401  # lxml has no types
    """Yields the rows as they are in the file, so that no table is too irregular."""
    for row in _inner(table, "tr"):
        cells = [" ".join(_word_lines(cell, styles)) for cell in _inner(row, "tc")]
        if line := table_row(cells):
            yield line


def _inner(parent: Any, name: str) -> Iterator[Any]:  # noqa: ANN401  # lxml has no types
    """Yields the rows of a table or the cells of a row, also those inside content controls."""
    for child in parent:
        if _name(child) in _WRAPPERS:
            yield from _inner(child, name)
        elif _name(child) == name:
            yield child


_BREAKS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def _word_text(paragraph: Any) -> str:  # noqa: ANN401  # lxml has no types
    """Returns the text of a paragraph, with insertions, fields and text boxes."""
    parts: list[str] = []
    for each in paragraph.iter(*(f"{{*}}{name}" for name in ("t", "p", *_BREAKS))):
        name = _name(each)
        if next(each.iterancestors("{*}Fallback", "{*}moveFrom"), None) is not None:
            continue  # a copy for older programs, or what was moved
        if name == "t":
            parts.append(each.text or "")
        elif name == "p":
            parts.append(" " if parts else "")
        elif _name(each.getparent()) != "tabs":
            parts.append(_BREAKS[name])
    return "".join(parts)
