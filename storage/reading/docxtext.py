"""Converts DOCX to Markdown: headings, lists and tables in document order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING
from zipfile import ZipFile

from storage.errors import UnreadableDocumentError

if TYPE_CHECKING:
    from docx.blkcntnr import BlockItemContainer
    from docx.document import Document
    from docx.table import Table
    from docx.text.paragraph import Paragraph

# Maximum bytes that an archive's files may have in total.
#
# A file never unpacks to more than it declares, because zipfile stops there.
MAX_UNPACKED_BYTES = 300_000_000
_NO_MEMORY = (0, 2)  # libxml2's error codes without details, and XML_ERR_NO_MEMORY
_MAIN_PART = "word/document.xml"
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_DEEPEST_HEADING = 6


def read(data: bytes) -> tuple[str, str, None]:
    """Returns the title in the file's metadata, if any, and its text as Markdown."""
    _check_archive(data)
    import docx

    try:
        document = docx.Document(BytesIO(data))
    except SyntaxError as error:  # the base class of lxml's errors
        if getattr(error, "code", None) in _NO_MEMORY:
            raise MemoryError from error
        raise
    text = "\n".join(_lines(document))
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


def _lines(container: Document | BlockItemContainer) -> Iterator[str]:
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
        texts = (" ".join(" ".join(_lines(cell)).split()) for cell in cells.values())
        yield "| " + " | ".join(texts) + " |"
