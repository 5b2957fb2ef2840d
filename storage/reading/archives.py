"""Converts documents that are ZIP archives to Markdown: DOCX, XLSX, PPTX, ODF and EPUB."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from storage.errors import UnreadableDocumentError
from storage.reading.content import (
    LONGEST_TEXT,
    TOO_LONG,
    Content,
    core_title,
    encryption_error,
    main_part,
    open_archive,
    parse_xml,
    parts_of,
    table_row,
)

_OPENXML = "application/vnd.openxmlformats-officedocument."
XLSX = _OPENXML + "spreadsheetml.sheet"
PPTX = _OPENXML + "presentationml.presentation"
ODF = "application/vnd.oasis.opendocument."
EPUB = "application/epub+zip"
_CONTAINER = "META-INF/container.xml"
_PLAIN_TIMES = re.compile(r"(?: 00:00:00|(?<=:\d\d:\d\d)\.0+)$")
_DEEPEST_HEADING = 6


def read_archive(data: bytes) -> Content:
    """Reads a document by the files in its archive; raises UnreadableDocumentError for others."""
    with open_archive(data) as archive:
        names, main = set(archive.namelist()), main_part(archive)
        if main.startswith("xl/"):
            return read_workbook(data, XLSX)
        if main.startswith("ppt/"):
            return _read_slides(archive, main)
        if main.endswith(".xml") and parse_xml(archive.read(main)).tag.endswith("}document"):
            from storage.reading.office_files import read_docx

            return read_docx(archive, main)
        kind = archive.read("mimetype").strip() if "mimetype" in names else b""
        if _CONTAINER in names and (kind == EPUB.encode() or "mimetype" not in names):
            return _read_book(archive)
        if kind.startswith(ODF.encode()) and "content.xml" in names:
            if kind.removeprefix(ODF.encode()).startswith(b"spreadsheet"):
                return read_workbook(data, kind.decode())
            return _read_odf(archive, kind.decode())
        raise _refusal(names)


def _refusal(names: set[str]) -> UnreadableDocumentError:
    from storage.reading.unreadable import refusal

    if any(name.endswith(".iwa") or name == "Index.zip" for name in names):
        return refusal("a document of Apple iWork (Pages, Numbers or Keynote)", "Export it as PDF")
    if "META-INF/MANIFEST.MF" in names or any(name.endswith(".class") for name in names):
        return refusal("a Java archive", "Unpack it and import the folder")
    return refusal("a ZIP archive", "Unpack it and import the folder")


def read_workbook(data: bytes, media_type: str = "") -> Content:
    """Reads XLSX, XLSB, XLS and ODS: each sheet is a section, each row a line."""
    from python_calamine import PasswordError

    try:
        lines, notes = _sheets(data)
    except PasswordError as error:
        raise encryption_error() from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # of Rust; not an Exception
            raise ValueError(str(error)) from None
        raise
    if data.startswith(b"PK"):
        lines += ["", *_remarks(data)]
    return Content("\n".join(lines).strip(), media_type=media_type, notes=notes)


def _sheets(data: bytes) -> tuple[list[str], tuple[str, ...]]:
    """Returns the lines of all sheets, and a note if they were too long."""
    from python_calamine import CalamineWorkbook

    workbook = CalamineWorkbook.from_filelike(BytesIO(data))
    lines: list[str] = []
    left = LONGEST_TEXT
    for name in workbook.sheet_names:
        lines += ["", f"## {name}", ""]
        for row in workbook.get_sheet_by_name(name).iter_rows():
            if line := table_row([_cell(value) for value in row]):
                lines.append(line)
                left -= len(line)
            if left < 0:
                return lines, (TOO_LONG,)
        if lines[-3:] == ["", f"## {name}", ""]:
            del lines[-3:]
    return lines, ()


def _remarks(data: bytes) -> Iterator[str]:
    """Yields the comments and text boxes of a workbook."""
    with open_archive(data) as archive:
        for path in sorted(archive.namelist()):
            if re.match(r"xl/(?:drawings/drawing|comments)[^/]*\.xml$", path):
                for each in parse_xml(archive.read(path)).iter("{*}p", "{*}comment"):
                    if text := " ".join("".join(each.itertext("{*}t")).split()):
                        yield text


def _cell(value: float | str | datetime | date | time | timedelta) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)  # noqa: PLR2004  # above, floats are not exact
    return _PLAIN_TIMES.sub("", str(value)).replace("|", "\\|")


def _read_slides(archive: ZipFile, main: str) -> Content:
    """Reads PPTX: each slide is a section with its speaker's notes."""
    sections = []
    parts = parts_of(archive, main)
    for number, entry in enumerate(parse_xml(archive.read(main)).iterfind(".//{*}sldId"), start=1):
        keys = (value for name, value in entry.items() if name.endswith("}id"))
        _, path = parts.get(next(keys, ""), ("", ""))
        if not path:
            continue
        slide = parse_xml(archive.read(path))
        title = " ".join(_paragraphs(slide, _is_title))
        lines = [f"## {title or f'Slide {number}'}", "", *_paragraphs(slide, _is_body)]
        for kind, label in (("diagramData", ""), ("notesSlide", "Notes: ")):
            for tree in _related(archive, path, kind):
                lines += [label + line for line in _paragraphs(tree, _is_body)]
        sections.append("\n".join(lines).strip())
    return Content("\n\n".join(sections), core_title(archive), PPTX)


def _related(archive: ZipFile, part: str, kind: str) -> Iterator[Any]:
    for found, path in parts_of(archive, part).values():
        if found == kind:
            yield parse_xml(archive.read(path))


def _is_title(shape: Any) -> bool:  # noqa: ANN401  # lxml has no types
    kinds = (each.get("type") for each in shape.iterfind(".//{*}nvPr/{*}ph"))
    return any(kind in {"title", "ctrTitle"} for kind in kinds)


def _is_body(shape: Any) -> bool:  # noqa: ANN401  # lxml has no types
    """Returns whether a shape is content, not the title, a number or a footer."""
    kinds = {each.get("type") for each in shape.iterfind(".//{*}nvPr/{*}ph")}
    return kinds.isdisjoint({"title", "ctrTitle", "sldNum", "dt", "ftr", "hdr", "sldImg"})


def _paragraphs(tree: Any, accepts: Callable[[Any], bool]) -> Iterator[str]:  # noqa: ANN401  # lxml has no types
    """Yields the paragraphs and table rows of the accepted shapes of a slide."""
    shapes = tree.findall(".//{*}sp") + tree.findall(".//{*}graphicFrame") or [tree]
    place = {each: at for at, each in enumerate(tree.iter())}
    for shape in sorted(filter(accepts, shapes), key=place.__getitem__):
        for each in shape.iter("{*}tr", "{*}p"):
            if each.tag.endswith("}tr"):
                cells = [" ".join(map(_text, cell.iter("{*}p"))) for cell in each.iterfind("{*}tc")]
                line = table_row(cells)
            else:
                line = "" if next(each.iterancestors("{*}tc"), None) is not None else _text(each)
            if line.strip():
                yield line.strip()


def _text(paragraph: Any) -> str:  # noqa: ANN401  # lxml has no types
    return "".join(each.text or " " for each in paragraph.iter("{*}t", "{*}br"))


def _read_odf(archive: ZipFile, media_type: str) -> Content:
    """Reads texts, presentations and drawings of OpenDocument."""
    manifest = "META-INF/manifest.xml"
    if manifest in archive.namelist() and b"encryption-data" in archive.read(manifest):
        raise encryption_error()
    title = ""
    if "meta.xml" in archive.namelist():
        title = parse_xml(archive.read("meta.xml")).findtext(".//{*}title") or ""
    body = parse_xml(archive.read("content.xml")).find(".//{*}body")
    lines = _odf_lines(body)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return Content(text, title, media_type)


def _odf_lines(body: Any) -> Iterator[str]:  # noqa: ANN401  # lxml has no types
    passed = {"tracked-changes", "annotation", "forms"}
    slides = 0
    for each in body.iter("{*}h", "{*}p", "{*}table-row", "{*}page"):
        above = [parent.tag.rpartition("}")[2] for parent in each.iterancestors()]
        kind = each.tag.rpartition("}")[2]
        if not passed.isdisjoint(above) or {"table-row", "p", "h"} & set(above):
            continue
        if kind == "page":
            slides += 1
            yield from ("", f"## Slide {slides}", "")
        elif kind == "table-row":
            cells = each.iterfind("{*}table-cell")
            if line := table_row([" ".join(map(_odf_text, cell.iter("{*}p"))) for cell in cells]):
                yield line
        elif text := _odf_text(each).strip():
            if kind == "h":
                level = int(next((v for k, v in each.items() if k.endswith("level")), "1"))
                text = f"{'#' * min(max(level, 1), _DEEPEST_HEADING)} {text}"
            is_item = "list-item" in above
            yield from ([f"- {text}"] if is_item and kind == "p" else ["", text, ""])


def _odf_text(element: Any) -> str:  # noqa: ANN401  # lxml has no types
    """Returns the text of a paragraph; spaces, tabs and line breaks are elements."""
    parts = [element.text or ""]
    for child in element:
        name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else ""
        if name in {"s", "tab", "line-break", "p"}:
            parts.append(" ")
        if name not in {"", "annotation", "note-citation"}:
            parts.append(_odf_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _read_book(archive: ZipFile) -> Content:
    """Reads EPUB: its chapters in reading order."""
    from storage.reading.htmltext import page_text

    root = parse_xml(archive.read(_CONTAINER)).find(".//{*}rootfile").get("full-path")
    package = parse_xml(archive.read(root))
    files = {each.get("id"): each for each in package.iterfind(".//{*}manifest/{*}item")}
    chapters = []
    for entry in package.iterfind(".//{*}spine/{*}itemref"):
        item = files.get(entry.get("idref"))
        if item is None or "nav" in (item.get("properties") or "").split():
            continue
        path = posixpath.join(posixpath.dirname(root), unquote(item.get("href")))
        path = posixpath.normpath(path)
        if path in archive.namelist() and "html" in (item.get("media-type") or ""):
            chapters.append(page_text(archive.read(path)))
    text = "\n\n".join(filter(None, chapters))
    if not text and "META-INF/encryption.xml" in archive.namelist():
        raise UnreadableDocumentError(
            "Its publisher encrypted it (DRM).",
            suggestions=("Add a copy without DRM, or notes about it.",),
        )
    authors = tuple(each.text for each in package.iterfind(".//{*}creator") if each.text)
    return Content(
        text,
        package.findtext(".//{*}metadata/{*}title") or "",
        EPUB,
        entities=authors,
        metadata={"authors": list(authors)} if authors else {},
    )


def read_xml_text(data: bytes) -> Content:
    """Reads the texts of a drawing (SVG) or a FictionBook."""
    root = parse_xml(data)
    title = root.findtext(".//{*}title") or root.findtext(".//{*}book-title") or ""
    found = (
        "".join(each.itertext("*")) for each in root.iter("{*}p", "{*}text", "{*}desc", "{*}v")
    )
    lines = [" ".join(text.split()) for text in found]
    return Content("\n\n".join(filter(None, lines)), " ".join(title.split()))
