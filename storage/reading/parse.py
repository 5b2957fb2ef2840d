"""Converts files to text, by their format (`formats`).

Parsers process hostile bytes, so `parse_isolated` runs them in a process that can be killed
(`isolated`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any

from anyio import to_thread

from storage.errors import UnreadableDocumentError
from storage.models import seconds_of
from storage.reading.content import Attachment, Content
from storage.reading.conversations import title_of
from storage.reading.decode import REPLACEMENT
from storage.reading.formats import MARKDOWN, MAX_BYTES, TABLES, DocumentFormat, format_of
from storage.reading.frontmatter import Note, read_note
from storage.reading.isolated import run_isolated
from storage.reading.machine_text import is_machine_written
from storage.reading.outline import first_heading

_PRODUCERS = re.compile(
    r"(?:microsoft (?:office )?(?:word|powerpoint|excel)|powerpoint presentation|openoffice|"
    r"libreoffice(?: writer)?|pages|google docs)\s*[-\u2013\u2014:]\s*",
    re.IGNORECASE,
)

# Default titles by programs and templates, optionally with a number.
_DEFAULT = re.compile(
    r"""[(\[<"']*(?:
    untitled|unnamed|anonymous|unknown|none|null|no\ title|title|your\ title(?:\ here)?|
    insert\ title\ here|page\ title|(?:article|paper|document|report)\ title|
    title\ of\ (?:the\ )?(?:paper|article|document)|(?:la)?tex\ (?:document|output)|template|
    (?:untitled|new|word|blank|html|my|microsoft\ word|google)?[ _-]*document|
    (?:new|untitled|blank|web)\ page|index|main|default|
    (?:powerpoint|untitled)?[ _-]*presentation|slide|(?:vite|react|webpack)[ +a-z]*\ app|
    unbenannt|ohne\ titel|titel|dokument|neues\ dokument|unbenanntes\ dokument|präsentation|
    sans\ titre|sans\ nom|document\ sans\ (?:titre|nom)|nouveau\ document|titre|
    sin\ título|documento(?:\ sin\ título)?|sem\ título|senza\ (?:titolo|nome)|naamloos|
    без\ (?:названия|имени)|документ|無題(?:ドキュメント|の文書)?|名称未設定|文書|
    无标题(?:文档)?|未命名|未命名文档|文档|新建文档|新建\ ?microsoft\ word\ 文档|제목\ ?없음
    )[)\]>"']*[\s_.-]*(?:\(?\d{1,3}\)?)?[)\]>"']*""",
    re.IGNORECASE | re.VERBOSE,
)

# A file name or path, which is worth less than the file's current name.
_FILE = re.compile(
    r"(?:file:/|[a-z]:\\|\\\\|~?/).*|\S.{0,200}\.(?:docx?|dotx?|docm|odt|ott|rtf|wpd|wps|pdf|e?ps|dvi|"
    r"tex|ltx|typ|indd|qxd|qxp|pmd|p65|fm|pptx?|odp|key|xlsx?|ods|numbers|pages|cdr|ai|svg|html?|"
    r"xhtml|php|aspx?|txt|md|rst|tmp)",
    re.IGNORECASE,
)


def own_title(text: str) -> str:
    """Returns a title, or nothing if a program set it by default."""
    title = _PRODUCERS.sub("", " ".join(text.split()), count=1) if text else ""
    has_letters = any(map(str.isalnum, title))
    if not has_letters or _DEFAULT.fullmatch(title) or _FILE.fullmatch(title):
        return ""
    return title


MOST_ATTACHMENTS = 200
ATTACHMENT_SECONDS = 30.0  # processor time for those of one file; the last may exceed it
DEEPEST = 3  # levels of attachments in attachments
_HEADING_MARK = re.compile(r"^(?=#{1,4} )", re.MULTILINE)
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{600,}+"
    r"|(?:[A-Za-z0-9+/]{60,}+[ \t]*\n[ \t]*){8,}[A-Za-z0-9+/]*)={0,2}"
)
_SURROGATES_AND_NUL = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file converted to text."""

    title: str  # its own title, its first heading, or its file name as words
    text: str  # the whole text with LF line ends; Markdown without its front matter
    media_type: str  # MIME type it was read as
    markdown: bool  # whether the text is Markdown, with headings
    # Unix seconds of its own date; for a note also from its file name.
    event_time: float | None = None
    keywords: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()  # names it declares or links to
    metadata: Mapping[str, Any] = field(default_factory=dict)  # other fields it declares
    # The numbers, from 1, of lines with bytes that could not be decoded; these are marked in the
    # text (U+FFFD).
    broken_lines: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()  # what the user must know about the text
    machine_written: bool = False  # whether it is a log, data or minified code


def parse(data: bytes, *, name: str) -> ParsedDocument:
    """Reads a file's text; raises UnreadableDocumentError if it cannot be read or has none."""
    _check_size(data, name)
    with _name_errors(name):
        return _parse_as(format_of(data, name), data, name)


async def parse_isolated(
    data: bytes,
    *,
    name: str,
    timeout: float,  # noqa: ASYNC109  # named in the error
) -> ParsedDocument:
    """Reads a file's text without blocking, and survives crashes of the parser.

    All but plain text and Markdown is read in a worker process with limited memory and processor
    time, which is killed when it hangs or the caller is cancelled.
    """
    _check_size(data, name)
    with _name_errors(name):
        kind = format_of(data, name)
    if not kind.isolated:
        return await to_thread.run_sync(lambda: parse(data, name=name))
    return await run_isolated(partial(parse, data, name=name), name=name, timeout=timeout)


def _check_size(data: bytes, name: str) -> None:
    if not data:
        raise UnreadableDocumentError(
            f"{name!r} is empty.", suggestions=("Add a file that contains text.",)
        )
    if len(data) > MAX_BYTES:
        raise UnreadableDocumentError(
            f"{name!r} has {len(data):,} bytes; at most {MAX_BYTES:,} are read.",
            suggestions=("Split it into smaller files.",),
        )


@contextmanager
def _name_errors(name: str) -> Iterator[None]:
    """Converts any exception of a parser to one error with the file's name."""
    try:
        yield
    except UnreadableDocumentError as error:
        raise UnreadableDocumentError(
            f"{name!r} cannot be read. {error.message}", suggestions=error.suggestions
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise UnreadableDocumentError(
            f"{name!r} cannot be read. It is damaged: {reason[:200]}",
            suggestions=("Save it again with the program it comes from, or as plain text.",),
        ) from error


def _parse_as(kind: DocumentFormat, data: bytes, name: str) -> ParsedDocument:
    content = kind.read(data)
    text = _BASE64.sub(_without_base64, _clean(content.text))
    attached = _attached(content.attachments, time.process_time() + ATTACHMENT_SECONDS)
    if not text.strip() and not attached:
        raise UnreadableDocumentError(
            "It contains no text.", suggestions=("Add a file that contains text.",)
        )
    broken = () if kind.isolated else _broken_lines(text, data)
    note = read_note(text) if kind is MARKDOWN else Note(text)
    when = content.event_time if note.event_time is None else note.event_time
    if kind is MARKDOWN and when is None:
        when = _date_in(name)
    heading = first_heading(note.body) if kind.markdown else ""
    metadata = {**content.metadata, **note.metadata}
    return ParsedDocument(
        title=title_of(note.title or own_title(content.title) or heading or _title_from(name)),
        text="\n\n".join(filter(None, (note.body, *attached))),
        media_type=content.media_type or kind.media_type,
        markdown=kind.markdown,
        event_time=when,
        keywords=tuple(map(title_of, note.keywords)),
        entities=tuple(map(title_of, (*note.entities, *content.entities))),
        metadata=json.loads(_clean(json.dumps(metadata, ensure_ascii=False))),
        broken_lines=broken,
        notes=content.notes,
        machine_written=_is_machine_written(kind, content),
    )


def _is_machine_written(kind: DocumentFormat, content: Content) -> bool:
    is_table = (content.media_type or kind.media_type) in TABLES
    is_plain = not kind.markdown and not kind.isolated
    return (is_table or is_plain) and is_machine_written(content.text, is_table=is_table)


def _without_base64(match: re.Match[str]) -> str:
    """Leaves out a file that is embedded as base64; other long words stay."""
    is_data = all(re.search(kind, match[0]) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    return f"[{len(match[0]):,} characters of base64]" if is_data else match[0]


def _clean(text: str) -> str:
    return _SURROGATES_AND_NUL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _attached(attachments: Sequence[Attachment], until: float, depth: int = 0) -> list[str]:
    """Returns a section for each file inside another one, by the file's own reader."""
    sections = []
    for number, each in enumerate(attachments):
        if number == MOST_ATTACHMENTS or time.process_time() > until:
            sections.append(f"{len(attachments) - number} more attachments were left out.")
            break
        kind, text = None, ""
        try:
            kind = format_of(each.data, each.name)
            inner = kind.read(each.data)
            nested = _attached(inner.attachments, until, depth + 1) if depth < DEEPEST else []
            text = _BASE64.sub(_without_base64, _clean(inner.text).strip())
            text = "\n\n".join((text, *nested))
        except UnreadableDocumentError as error:
            text = error.message
        except MemoryError:
            text = "It takes too much memory to read."
        except Exception as error:  # noqa: BLE001  # a damaged attachment must not hide its mail
            text = f"It is damaged: {str(error)[:200]}"
        if kind is not None and kind.markdown:
            text = _HEADING_MARK.sub("##", text)
        sections.append(f"## Attachment: {title_of(each.name)}\n\n{text}".strip())
    return sections


def _broken_lines(text: str, data: bytes) -> tuple[int, ...]:
    """Returns the lines with a replacement mark, unless the file itself contains that character."""
    if REPLACEMENT not in text or REPLACEMENT.encode() in data:
        return ()
    lines = enumerate(text.split("\n"), start=1)
    return tuple(number for number, line in lines if REPLACEMENT in line)


def _title_from(name: str) -> str:
    """Returns the file's name as words: `annual_report-2024.pdf` is "Annual report 2024"."""
    words = re.sub(r"(?:[\s_]|(?<!\d)-|-(?!\d))+", " ", PurePath(name).stem).strip()
    return words[:1].upper() + words[1:] or name


def _date_in(name: str) -> float | None:
    """Returns the day at the beginning of a note's name, as in journals: `2026-11-22.md`."""
    found = re.match(r"\d{4}-\d\d-\d\d(?!\d)", PurePath(name).name, re.ASCII)
    try:
        return seconds_of(found[0]) if found else None
    except (ValueError, OverflowError):
        return None
