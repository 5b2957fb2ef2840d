"""Document formats: how each is recognized and read; a new one is another entry of `FORMATS`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeAlias

from storage.errors import UnreadableDocumentError

MAX_BYTES = 50_000_000  # maximum bytes of a file
# Converts bytes to title (or nothing), text and encoding (None if the bytes are not text).
Reader: TypeAlias = Callable[[bytes], tuple[str, str, str | None]]
_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PDF_HEADER_BYTES = 1024  # readers accept the header anywhere in the first kilobyte


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A document format."""

    media_type: str
    suffixes: tuple[str, ...]  # its file suffixes, the usual one first
    read: Reader
    # Returns whether bytes are in this format; None if only the name can tell.
    begins: Callable[[bytes, str], bool] | None = None
    by_name: bool = True  # whether a suffix is enough, regardless of the bytes
    markdown: bool = False  # whether the text is Markdown, with headings
    # Whether a library parses it, which runs in a process that can be killed.
    isolated: bool = False

    def matches(self, data: bytes, suffix: str) -> bool:
        """Returns whether a file is in this format, by its bytes and its suffix."""
        if self.by_name and suffix in self.suffixes:
            return True
        return self.begins is not None and self.begins(data, suffix)


# The readers import their modules on first use.
def _read_pdf(data: bytes) -> tuple[str, str, None]:
    from storage.reading.office_files import read_pdf

    return read_pdf(data)


def _read_docx(data: bytes) -> tuple[str, str, None]:
    from storage.reading.office_files import read_docx

    return read_docx(data)


def _read_html(data: bytes) -> tuple[str, str, str]:
    from storage.reading.htmltext import read_html

    return read_html(data)


def _read_text(data: bytes) -> tuple[str, str, str]:
    from storage.reading.decode import decode_marking

    try:
        decoded = decode_marking(data)
    except UnreadableDocumentError as error:
        raise UnreadableDocumentError(
            error.message, suggestions=("If it is text, save it as UTF-8 and add that file.",)
        ) from error
    return "", decoded.text, decoded.encoding


def _begins_archive(data: bytes, _suffix: str) -> bool:
    if data.startswith(_OLE_MAGIC):
        raise UnreadableDocumentError(
            "It is an Office file in the old format, or has a password.",
            suggestions=("Save it as .docx without a password.",),
        )
    return data.startswith(b"PK\x03\x04")


def _text(media_type: str, *suffixes: str) -> DocumentFormat:
    return DocumentFormat(media_type, suffixes, _read_text)


MARKDOWN = DocumentFormat(
    "text/markdown",
    (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"),
    _read_text,
    markdown=True,
)
_PLAIN = _text("text/plain", ".txt")

# The formats in matching order; other files are read as plain text.
FORMATS = (
    DocumentFormat(
        "application/pdf",
        (".pdf",),
        _read_pdf,
        lambda data, suffix: (
            data.startswith(b"%PDF-") or (suffix == ".pdf" and b"%PDF-" in data[:_PDF_HEADER_BYTES])
        ),
        by_name=False,
        isolated=True,
    ),
    DocumentFormat(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        (".docx",),
        _read_docx,
        _begins_archive,
        by_name=False,
        markdown=True,
        isolated=True,
    ),
    MARKDOWN,
    DocumentFormat(
        "text/html",
        (".html", ".htm", ".xhtml"),
        _read_html,
        lambda data, _suffix: _HTML_START.match(data) is not None,
        markdown=True,
        isolated=True,
    ),
    _text("text/csv", ".csv"),
    _text("text/css", ".css"),
    _text("application/json", ".json"),
    _text("text/x-rst", ".rst"),
    _text("application/toml", ".toml"),
    _text("text/tab-separated-values", ".tsv"),
    _text("application/xml", ".xml"),
    _text("application/yaml", ".yaml", ".yml"),
)

# Media types whose stored text is Markdown; all others are plain text.
MARKDOWN_MEDIA_TYPES = frozenset(each.media_type for each in FORMATS if each.markdown)


def format_of(data: bytes, name: str) -> DocumentFormat:
    """Returns the format of a file, by its bytes or else by the suffix of its name."""
    suffix = PurePath(name).suffix.lower()
    return next((each for each in FORMATS if each.matches(data, suffix)), _PLAIN)
