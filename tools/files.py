"""Files inside the root: reads, writes and lists them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from storage.models import utc
from storage.reading.decode import Decoded
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Alias, Effect, Subject, SubjectKind, ToolScope, tool
from tools.sandbox.files.sandbox import FileContent, Sandbox, Written
from tools.sandbox.files.text_files import (
    FILE_NAMES,
    Digest,
    Encoding,
    Excerpt,
    FilePath,
    LongLines,
    Newline,
    count_lines,
    editable_text,
    encode_text,
    excerpt,
    line_span,
    newline_style,
    present_encoding,
    read_text,
    replace_lines,
    short_digest,
    unicode_name,
    visible,
)

MAX_READ_BYTES = 10_000_000  # limit up to which a file is read whole
MAX_COUNTED_BYTES = 4_000_000_000  # limit up to which a larger file is scanned for line numbers

HEAD_BYTES = 50_000
"""Bytes at the start of a large file that decide its encoding, with the lines read."""

MAX_SHOWN_CHARACTERS = 2_000_000  # limit on the text that one call returns

MOST_PASSAGE_BYTES = 4 * (MAX_SHOWN_CHARACTERS + 2)
"""Byte size that exceeds the text limit in every encoding, even without a byte order mark."""

MAX_ENTRIES = 10_000  # limit on the entries of a listing

LineRange = Annotated[
    list[int],
    Field(
        min_length=2, max_length=2, description="[first, last] line from 1; negative from the end"
    ),
]


def _lines_from(given: Mapping[str, Any]) -> list[int]:
    """Converts `offset` (first line) and `limit` (number of lines) to a line range."""
    first, last = int(given.get("offset", 1)) or 1, -1
    if "limit" in given:
        last = first + int(given["limit"]) - 1
    return [first, last if (first < 0) == (last < 0) else -1]


def _lines_between(given: Mapping[str, Any]) -> list[int]:
    """Converts a first and a last line, counted from 1, of which one may be left out."""
    return [int(given.get("start_line", 1)), int(given.get("end_line", -1))]


class FileText(ToolModel):
    """Text of a file, or some of its lines.

    Attributes:
        file_path: The path as given.
        content: The lines, with their original line ends.
        first_line: Number of the first line shown, from 1; 0 if the file is empty.
        last_line: Number of the last line shown.
        total_lines: Lines in the file; absent if it is too large to count.
        encoding: Name of the codec, plus "-bom" if the file starts with a byte order mark.
        newline: The line end style.
        size: Size of the file in bytes.
        sha256: Digest of the whole file; absent if it is too large to read whole.
        truncated: Whether less is shown than requested.
        note: Further remarks; may be empty.
    """

    file_path: str
    content: str
    first_line: int
    last_line: int
    total_lines: OmitNone[int]
    encoding: str
    newline: Newline
    size: int
    sha256: OmitNone[str]
    truncated: bool
    note: str

    def to_text(self) -> str:
        """Formats a header line, then the unchanged content."""
        total = "an unknown number" if self.total_lines is None else str(self.total_lines)
        head = [f"lines {self.first_line}-{self.last_line} of {total}", self.encoding, self.newline]
        if self.truncated:
            head.append(f"{self.size} bytes")
        if self.sha256:
            head.append(f"sha256 {short_digest(self.sha256)}")
        note = f"\n[{self.note}]" if self.note else ""
        return f"[{visible(self.file_path)}: {', '.join(head)}]{note}\n{self.content}"


class FileWritten(ToolModel):
    """The result of a write.

    Attributes:
        file_path: The file, relative to the root.
        size: Size of the file in bytes.
        sha256: Digest of its content.
        encoding: The codec it was written in.
        created: Whether the file is new.
        lost: Why its former content cannot be restored; empty if it can.
    """

    file_path: str
    size: int
    sha256: str
    encoding: str
    created: bool
    lost: str

    def to_text(self) -> str:
        """Formats it as one line, plus a warning if it cannot be undone."""
        done = "Created" if self.created else "Wrote"
        digest = short_digest(self.sha256)
        lost = f"\n[This cannot be undone: what it held is not kept ({self.lost}).]"
        head = f"{done} {visible(self.file_path)}: {self.size} bytes, sha256 {digest}"
        return head + lost * bool(self.lost)


class DirectoryEntry(ToolModel):
    """One name in a directory.

    Attributes:
        name: Path relative to the root.
        type: Its type; links are not followed.
        size: Size in bytes; 0 unless it is a file.
        modified: Time of the last change, UTC.
    """

    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size: int
    modified: datetime

    def to_text(self) -> str:
        """Formats the entry as one line."""
        mark = {"directory": "/", "symlink": "@", "file": "", "other": "?"}[self.type]
        return f"{self.modified:%Y-%m-%d %H:%M} {self.size:>9} {visible(self.name)}{mark}"


class DirectoryListing(ToolModel):
    """The entries of a directory.

    Attributes:
        path: The directory as given.
        entries: Level by level, sorted within each directory.
        truncated: Whether there are more.
        unreadable: Directories that could not be listed.
    """

    path: str
    entries: list[DirectoryEntry]
    truncated: bool
    unreadable: list[str]

    def to_text(self) -> str:
        """Formats one line per entry; `/` marks a directory, `@` a link, `?` any other non-file."""
        lines = [f"[{visible(self.path)}: {len(self.entries)} entries]"]
        lines += [entry.to_text() for entry in self.entries]
        if self.truncated:
            lines.append("[There are more: list a directory below, or with less depth.]")
        lines += [f"[Not readable: {visible(name)}]" for name in self.unreadable]
        return "\n".join(lines)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("files",),
    capabilities=("view the content of a text file", "show some lines of a file"),
    aliases=("view_text_file",),
    aliases_elsewhere=("read", "read_text_file", "view"),
    subject=Subject(SubjectKind.PATH, "file_path"),
)
def read_file(
    context: RequestContext,
    file_path: Annotated[FilePath, FILE_NAMES],
    ranges: Annotated[
        LineRange | None,
        Alias("view_range"),
        Alias("offset", "limit", read=_lines_from),
        Alias("head", read=lambda given: [1, int(given["head"])]),
        Alias("tail", read=lambda given: [-int(given["tail"]), -1]),
        Alias("start_line", "end_line", read=_lines_between),
    ] = None,
    encoding: Encoding | None = None,
) -> FileText:
    """Reads a text file, or some of its lines."""
    found = context.sandbox.read(file_path, max_bytes=MAX_READ_BYTES)
    if found.truncated:
        return _long_text(context.sandbox, file_path, ranges, encoding)
    decoded = read_text(file_path, found, encoding)
    text = decoded.text
    total = count_lines(text)
    first, last = line_span(ranges, total, exact=False) if ranges else (1, total)
    if ranges is None and len(text) <= MAX_SHOWN_CHARACTERS:
        shown = Excerpt(text, min(1, total), total, cut=False)
    else:
        shown = excerpt(text, first, last, limit=MAX_SHOWN_CHARACTERS)
    return FileText(
        file_path=file_path,
        content=shown.content,
        first_line=shown.first,
        last_line=shown.last,
        total_lines=total,
        encoding=decoded.encoding + ("-bom" if decoded.bom else ""),
        newline=newline_style(text),
        size=found.size,
        sha256=hashlib.sha256(found.data).hexdigest(),
        truncated=shown.cut,
        note=_note(shown, decoded),
    )


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.WRITE},
    destructive=True,
    tags=("files",),
    capabilities=("create or overwrite a text file", "replace some lines of a file"),
    aliases=("write_text_file",),
    aliases_elsewhere=("write", "create", "create_file"),
    subject=Subject(SubjectKind.PATH, "file_path"),
)
def write_file(
    context: RequestContext,
    file_path: Annotated[FilePath, FILE_NAMES],
    content: Annotated[
        str,
        Field(max_length=MAX_READ_BYTES, description="The new text"),
        Alias("file_text", "contents"),
    ],
    ranges: LineRange | None = None,
    encoding: Encoding | None = None,
    expected_sha256: Digest | None = None,
) -> FileWritten:
    """Writes a text file and its missing directories, or replaces only the lines in ranges."""
    sandbox = context.sandbox
    if ranges is None:
        bom, name = (b"", encoding) if encoding else present_encoding(sandbox, file_path)
        data = bom + encode_text(content.removeprefix("\ufeff") if bom else content, name)
        return _answer(sandbox.write(file_path, data, expected_sha256=expected_sha256), name)
    names: list[str] = []

    def change(old: bytes) -> bytes:
        present = editable_text(file_path, old, encoding)
        names.append(present.encoding)
        start, end = line_span(ranges, count_lines(present.text), exact=True)
        text = replace_lines(present.text, start, end, content)
        return present.bom + encode_text(text, present.encoding)

    written = sandbox.edit(file_path, change, expected_sha256=expected_sha256)
    return _answer(written, names[0])


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("files",),
    capabilities=("list files and directories",),
    aliases_elsewhere=("ls", "list", "list_dir"),
    subject=Subject(SubjectKind.PATH, "path"),
)
def list_directory(
    context: RequestContext,
    path: Annotated[FilePath, Alias("dir_path", "directory")] = ".",
    depth: Annotated[int, Field(ge=1, le=10, description="Levels to show")] = 1,
) -> DirectoryListing:
    """Lists files and directories; links are shown and not followed."""
    listing = context.sandbox.list_directory(path, depth=depth, limit=MAX_ENTRIES)
    return DirectoryListing(
        path=path,
        entries=[
            DirectoryEntry.from_attributes(
                entry, name=unicode_name(entry.path), modified=utc(entry.mtime)
            )
            for entry in listing.entries
        ],
        truncated=listing.truncated,
        unreadable=[unicode_name(name) for name in listing.unreadable],
    )


def _long_text(
    sandbox: Sandbox, path: str, ranges: list[int] | None, encoding: str | None
) -> FileText:
    """Reads lines of a file too large to load; they and its start decide the encoding."""
    with sandbox.open_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = os.pread(file.fileno(), HEAD_BYTES, 0)
        told = read_text(path, FileContent(head, size, 0.0, truncated=True), encoding)
        sign = "\r" if newline_style(told.text) == "cr" else "\n"
        counted = min(size, MAX_COUNTED_BYTES)
        lines = LongLines(file.fileno(), counted, sign.encode(told.encoding))
        total = lines.total
        if counted < size and ranges and (min(ranges) < 0 or ranges[0] > total):
            raise InvalidArgumentsError(
                f"The lines {ranges} are out of reach: the file has {size} bytes, of which the "
                f"first {counted} ({total} lines) can be read.",
                next_actions=[f"Give ranges as [first, last] within 1 and {total}."],
            )
        first, last = line_span(ranges, total, exact=False) if ranges else (1, total)
        passage = lines.read(first, last, MOST_PASSAGE_BYTES)
    tells_nothing = first == 1 or head.isascii()
    before = b"" if tells_nothing else told.encode(told.text)
    decoded = read_text(path, FileContent(before + passage, size, 0.0, truncated=True), encoding)
    mark = told.bom if first == 1 else b""
    text = passage.removeprefix(mark).decode(decoded.encoding, "ignore")  # the last may be cut
    shown = _excerpt_of(text, first, last, sign)
    note = _note(shown, decoded)
    if counted < size:
        note = f"{note} Lines were counted in the first {counted} of {size} bytes.".lstrip()
    return FileText(
        file_path=path,
        content=shown.content,
        first_line=shown.first,
        last_line=shown.last,
        total_lines=total if counted == size else None,
        encoding=decoded.encoding + ("-bom" if told.bom else ""),
        newline=newline_style(told.text),
        size=size,
        sha256=None,
        truncated=shown.cut or (counted < size and shown.last == total),
        note=note,
    )


def _excerpt_of(text: str, first: int, last: int, sign: str) -> Excerpt:
    """Truncates lines of a large file that end in the given line end."""
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return Excerpt(text, first, last, cut=False)
    if sign not in text[:MAX_SHOWN_CHARACTERS]:
        return Excerpt(text[:MAX_SHOWN_CHARACTERS], first, first, cut=True)
    shown = excerpt(text, 1, last - first + 1, limit=MAX_SHOWN_CHARACTERS)
    return replace(shown, first=first, last=first + shown.last - 1)


def _note(shown: Excerpt, decoded: Decoded) -> str:
    notes = []
    if shown.cut and shown.content.endswith(("\n", "\r")):
        notes.append(f"Cut: for the rest, call again with ranges [{shown.last + 1}, -1].")
    elif shown.cut:
        notes.append(f"Line {shown.last} is too long and is shown in part.")
    if not decoded.certain:
        notes.append(
            f"The encoding is a guess; to replace lines, give encoding={decoded.encoding!r}."
        )
    return " ".join(notes)


def _answer(written: Written, encoding: str) -> FileWritten:
    path = unicode_name(written.path)
    return FileWritten.from_attributes(written, file_path=path, encoding=encoding)
