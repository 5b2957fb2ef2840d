"""Document formats: how each is recognized and read; a new one is another entry of `FORMATS`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TypeAlias

from storage.errors import UnreadableDocumentError
from storage.reading.content import DISPUTED, Content
from storage.reading.unreadable import binary_refusal, compound_refusal, is_compound, refusal

MAX_BYTES = 50_000_000  # maximum bytes of a file
Reader: TypeAlias = Callable[[bytes], Content]
_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
# The line before a message, and the beginning of its first header.
_MAILBOX_START = re.compile(
    rb"From \S[^\n]{0,200} (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [^\n]{0,20}\d\d:\d\d[^\n]{0,60}\n"
    rb"[A-Za-z-]+:"
)
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


def _lazy(module: str, function: str) -> Reader:
    """Returns a reader that imports its module on first use."""

    def read(data: bytes) -> Content:
        reader: Reader = getattr(import_module(f"storage.reading.{module}"), function)
        return reader(data)

    return read


def _read_compound(data: bytes) -> Content:
    if refused := compound_refusal(data):
        raise refused
    return _lazy("archives", "read_workbook")(data)


def _read_text(data: bytes) -> Content:
    from storage.reading.decode import decode_marking

    if data.startswith(b"%!PS"):
        raise refusal("a PostScript program", "Convert it to PDF, for example with ps2pdf")
    try:
        decoded = decode_marking(data)
    except UnreadableDocumentError as error:
        if refused := binary_refusal(data):
            raise refused from error
        raise UnreadableDocumentError(
            error.message, suggestions=("If it is text, save it as UTF-8 and add that file.",)
        ) from error
    notes = (DISPUTED,) if decoded.disputed else ()
    return Content(decoded.text, notes=notes)


def _begins_mailbox(data: bytes, suffix: str) -> bool:
    """Returns whether a file is a mailbox, which may be named so or in any other way."""
    return data.startswith(b"From ") and (
        suffix in {".mbox", ".mbx"} or _MAILBOX_START.match(data) is not None
    )


def _text(media_type: str, *suffixes: str) -> DocumentFormat:
    return DocumentFormat(media_type, suffixes, _read_text)


MARKDOWN = DocumentFormat(
    "text/markdown",
    (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"),
    _read_text,
    markdown=True,
)
_PLAIN = _text("text/plain", ".txt")

_read_archive = _lazy("archives", "read_archive")


def _markdown(
    media_type: str,
    reader: Reader,
    *suffixes: str,
    begins: Callable[[bytes, str], bool] | None = None,
    by_name: bool = True,
) -> DocumentFormat:
    return DocumentFormat(
        media_type, suffixes, reader, begins, by_name=by_name, markdown=True, isolated=True
    )


def _archive(media_type: str, *suffixes: str) -> DocumentFormat:
    return _markdown(
        media_type,
        _read_archive,
        *suffixes,
        begins=lambda data, suffix: data.startswith(b"PK\x03\x04") and suffix in suffixes,
        by_name=False,
    )


_OPENXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."

# The formats in matching order; other files are read as plain text.
FORMATS = (
    DocumentFormat(
        "application/pdf",
        (".pdf",),
        _lazy("office_files", "read_pdf"),
        lambda data, suffix: (
            data.startswith(b"%PDF-") or (suffix == ".pdf" and b"%PDF-" in data[:_PDF_HEADER_BYTES])
        ),
        by_name=False,
        isolated=True,
    ),
    _archive(_OPENXML + "spreadsheetml.sheet", ".xlsx", ".xlsm", ".xlsb"),
    _archive(_OPENXML + "presentationml.presentation", ".pptx", ".pptm", ".ppsx", ".potx"),
    _archive(_ODF + "text", ".odt", ".ott"),
    _archive(_ODF + "presentation", ".odp"),
    _archive(_ODF + "graphics", ".odg"),
    _archive(_ODF + "spreadsheet", ".ods"),
    _archive("application/epub+zip", ".epub"),
    # Every other archive, too; what it is decides its reader.
    _markdown(
        _OPENXML + "wordprocessingml.document",
        _read_archive,
        *(".docx", ".docm", ".dotx", ".dotm"),
        begins=lambda data, _suffix: data.startswith(b"PK\x03\x04"),
        by_name=False,
    ),
    _markdown(
        "application/vnd.ms-excel",
        _read_compound,
        ".xls",
        begins=lambda data, _suffix: is_compound(data),
        by_name=False,
    ),
    _markdown(
        "application/rtf",
        _lazy("structured", "read_rtf"),
        ".rtf",
        begins=lambda data, _suffix: data.startswith(b"{\\rtf"),
        by_name=False,
    ),
    _markdown("application/x-ipynb+json", _lazy("structured", "read_notebook"), ".ipynb"),
    _markdown(
        "text/calendar",
        _lazy("structured", "read_calendar"),
        ".ics",
        begins=lambda data, _suffix: data.lstrip()[:15].upper() == b"BEGIN:VCALENDAR",
    ),
    _markdown(
        "text/vcard",
        _lazy("structured", "read_cards"),
        ".vcf",
        begins=lambda data, _suffix: data.lstrip()[:11].upper() == b"BEGIN:VCARD",
    ),
    _markdown(
        "application/mbox",
        _lazy("mail", "read_mailbox"),
        *(".mbox", ".mbx"),
        begins=_begins_mailbox,
        by_name=False,
    ),
    _markdown("message/rfc822", _lazy("mail", "read_message"), ".eml", ".emlx", ".mht", ".mhtml"),
    MARKDOWN,
    _markdown(
        "text/html",
        _lazy("htmltext", "read_html"),
        *(".html", ".htm", ".xhtml"),
        begins=lambda data, _suffix: _HTML_START.match(data) is not None,
    ),
    _text("text/csv", ".csv"),
    _text("text/css", ".css"),
    _markdown("image/svg+xml", _lazy("archives", "read_xml_text"), ".svg"),
    _markdown("application/x-fictionbook+xml", _lazy("archives", "read_xml_text"), ".fb2"),
    _text("application/json", ".json"),
    _text("text/x-rst", ".rst"),
    _text("application/toml", ".toml"),
    _text("text/tab-separated-values", ".tsv"),
    _text("application/xml", ".xml"),
    _text("application/yaml", ".yaml", ".yml"),
)

# Media types of tables, whose rows are data more often than prose.
TABLES = frozenset(
    {"text/csv", "text/tab-separated-values", "application/vnd.ms-excel"}
    | {_OPENXML + "spreadsheetml.sheet", _ODF + "spreadsheet"}
)

# Media types whose stored text is Markdown; all others are plain text.
MARKDOWN_MEDIA_TYPES = frozenset(each.media_type for each in FORMATS if each.markdown)


def format_of(data: bytes, name: str) -> DocumentFormat:
    """Returns the format of a file, by its bytes or else by the suffix of its name."""
    suffix = PurePath(name).suffix.lower()
    return next((each for each in FORMATS if each.matches(data, suffix)), _PLAIN)
