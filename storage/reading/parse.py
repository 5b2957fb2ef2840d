"""Files to text: what a file is, by its name and its bytes, and the text in it.

Plain text and Markdown are read here, the formats that need a library each in a module of their own
(`htmltext.py`, `pdftext.py`, `docxtext.py`). Those libraries meet hostile bytes, so
`parse_isolated` runs them in a process that can be killed (`isolated.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePath
from typing import Any, Literal

from anyio import to_thread

from storage.errors import UnreadableDocumentError
from storage.reading import docxtext, htmltext, pdftext
from storage.reading.decode import decode
from storage.reading.frontmatter import Note, read_note
from storage.reading.isolated import run_isolated
from storage.reading.outline import first_heading

__all__ = ["MAX_BYTES", "ParsedDocument", "parse", "parse_isolated"]

MAX_BYTES = 50_000_000
"""Bytes that a file has at most."""

Format = Literal["text", "markdown", "html", "pdf", "docx"]

_MARKDOWN_SUFFIXES = {".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"}
_HTML_SUFFIXES = {".html", ".htm", ".xhtml"}
_MEDIA_TYPES = {
    "markdown": "text/markdown",
    "html": "text/html",
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".csv": "text/csv",
    ".css": "text/css",
    ".json": "application/json",
    ".rst": "text/x-rst",
    ".toml": "application/toml",
    ".tsv": "text/tab-separated-values",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_HEADER_BYTES = 1024  # readers accept the header anywhere in the first kilobyte
_SURROGATES_AND_NUL = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file as text.

    Attributes:
        title: Its own title, its first heading, or its name in words.
        text: The whole text, lines ended by line feeds; of Markdown without its front matter.
        media_type: MIME type it was read as.
        markdown: Whether the text is Markdown, and so has headings.
        encoding: Name of the codec its bytes were read by; None for PDF and DOCX.
        event_time: Unix seconds of the date that it gives itself; of a note also in its name.
        keywords: What it says that it is about.
        entities: Names that it gives itself or links to.
        metadata: What else it says of itself.
    """

    title: str
    text: str
    media_type: str
    markdown: bool
    encoding: str | None
    event_time: float | None = None
    keywords: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def parse(data: bytes, *, name: str) -> ParsedDocument:
    """Reads a file's text.

    Args:
        data: The file's bytes.
        name: The file's name; its suffix tells apart what the bytes leave open.

    Raises:
        UnreadableDocumentError: If it is empty, too large, binary, encrypted or damaged, or holds
            no text.
    """
    _check_size(data, name)
    with _named(name):
        return _parse_as(_format_of(data, name), data, name)


async def parse_isolated(
    data: bytes,
    *,
    name: str,
    timeout: float,  # noqa: ASYNC109  # the error says how long it was
) -> ParsedDocument:
    """Reads a file's text without blocking, whatever its bytes do to the library that reads them.

    HTML, PDF and DOCX are read in a worker process, which is killed at the deadline or when the
    caller is cancelled; other text in a thread.

    Args:
        data: The file's bytes.
        name: The file's name.
        timeout: Seconds that it may take.

    Raises:
        UnreadableDocumentError: As `parse`; or if it takes too long, or the worker dies of it.
    """
    _check_size(data, name)
    with _named(name):
        is_text = _format_of(data, name) in {"text", "markdown"}
    if is_text:
        return await to_thread.run_sync(lambda: parse(data, name=name))
    return await run_isolated(partial(parse, data, name=name), name=name, timeout=timeout)


def _check_size(data: bytes, name: str) -> None:
    if not data:
        raise UnreadableDocumentError(
            f"{name!r} is empty.", suggestions=("Add a file that holds text.",)
        )
    if len(data) > MAX_BYTES:
        raise UnreadableDocumentError(
            f"{name!r} has {len(data):,} bytes; at most {MAX_BYTES:,} are read.",
            suggestions=("Split it into smaller files.",),
        )


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Turns whatever a parser raises into one error with the file's name."""
    try:
        yield
    except UnreadableDocumentError as error:
        raise UnreadableDocumentError(
            f"{name!r} cannot be read. {error.message}", suggestions=error.suggestions
        ) from error
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise UnreadableDocumentError(
            f"{name!r} cannot be read. It is damaged: {reason[:200]}",
            suggestions=("Save it again with the program it comes from, or as plain text.",),
        ) from error


def _format_of(data: bytes, name: str) -> Format:
    suffix = PurePath(name).suffix.lower()
    if b"%PDF-" in data[:_PDF_HEADER_BYTES] and (suffix == ".pdf" or data.startswith(b"%PDF-")):
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return "docx"
    if data.startswith(_OLE_MAGIC):
        raise UnreadableDocumentError(
            "It is an Office file of the old kind, or one with a password.",
            suggestions=("Save it as .docx without a password.",),
        )
    if suffix in _MARKDOWN_SUFFIXES:
        return "markdown"
    if suffix in _HTML_SUFFIXES or _HTML_START.match(data):
        return "html"
    return "text"


def _decoded(data: bytes) -> tuple[str, str]:
    """The text in bytes and its encoding, which nobody could name."""
    try:
        decoded = decode(data)
    except UnreadableDocumentError as error:
        raise UnreadableDocumentError(
            error.message, suggestions=("If it is text, save it in UTF-8 and add that.",)
        ) from error
    return decoded.text, decoded.encoding


def _parse_as(kind: Format, data: bytes, name: str) -> ParsedDocument:
    encoding: str | None = None
    title = ""
    if kind == "pdf":
        title, text = pdftext.read(data)
    elif kind == "docx":
        title, text = docxtext.read(data)
    elif kind == "html":
        title, text, encoding = htmltext.read(data)
    else:
        text, encoding = _decoded(data)
    text = _SURROGATES_AND_NUL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    if not text.strip():
        raise UnreadableDocumentError(
            "It holds no text.", suggestions=("Add a file that holds text.",)
        )
    note = read_note(text) if kind == "markdown" else Note(text)
    when = note.event_time
    if kind == "markdown" and when is None:
        when = _date_in(name)
    is_markdown = kind not in {"text", "pdf"}
    heading = first_heading(note.body) if is_markdown else ""
    suffix = PurePath(name).suffix.lower()
    return ParsedDocument(
        title=note.title or title.strip() or heading or _title_from(name),
        text=note.body,
        media_type=_MEDIA_TYPES.get(kind) or _MEDIA_TYPES.get(suffix, "text/plain"),
        markdown=is_markdown,
        encoding=encoding,
        event_time=when,
        keywords=note.keywords,
        entities=note.entities,
        metadata=note.metadata,
    )


def _title_from(name: str) -> str:
    """The file's name in words: `annual_report-2024.pdf` is "Annual report 2024"."""
    words = re.sub(r"(?:[\s_]|(?<!\d)-|-(?!\d))+", " ", PurePath(name).stem).strip()
    return words[:1].upper() + words[1:] or name


def _date_in(name: str) -> float | None:
    """The day that a note's name begins with, as those of journals do: `2026-11-22.md`; UTC."""
    found = re.match(r"\d{4}-\d\d-\d\d(?!\d)", PurePath(name).name, re.ASCII)
    try:
        day = found and datetime.fromisoformat(found[0])
    except ValueError:
        return None
    return day.replace(tzinfo=UTC).timestamp() if day else None
