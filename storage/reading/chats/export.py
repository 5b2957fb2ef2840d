"""Chat exports: from a file as people download it to the conversations in it, one at a time.

The file is JSON (a list, or one value a line), or a zip archive that holds such files. Exports have
a gigabyte and more, so no more than one conversation is in memory, and what stands before a damaged
place is read.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Generator, Iterator
from pathlib import PurePath
from typing import IO, TextIO

from storage.errors import UnreadableDocumentError
from storage.reading.chats.chatgpt import read_chatgpt
from storage.reading.chats.claude import read_claude
from storage.reading.chats.conversation import Conversation, read_plain

MAX_CONVERSATION_CHARS = 64_000_000
"""Characters of JSON that one conversation has at most."""

MAX_UNPACKED_BYTES = 8_000_000_000
"""Bytes of JSON that an archive unpacks to at most."""

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".zip"})
"""How the names of files end that may be exports."""

_CHUNK_CHARS = 1 << 20
_BETWEEN = re.compile(r"[\s,\[\]]*")
_READERS = (read_chatgpt, read_claude, read_plain)
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # the others unpack without a bound


def read_export(
    file: IO[bytes], *, name: str, max_bytes: int = MAX_UNPACKED_BYTES
) -> Generator[Conversation | None, None, None]:
    """Reads the conversations in a file; none at all if it is no chat export.

    Args:
        file: The file, which is read while the conversations are asked for, and then closed.
        name: Its name; the suffix tells an archive from JSON.
        max_bytes: Bytes that an archive unpacks to at most.

    Yields:
        Each conversation, or None for what stands among them and is no conversation.

    Raises:
        UnreadableDocumentError: If the file is damaged or too large; what was yielded is sound.
    """
    if PurePath(name).suffix.lower() != ".zip":
        yield from _conversations(file, name)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            for member in _members(archive, name, max_bytes):
                with archive.open(member) as stream:
                    yield from _conversations(stream, f"{name}: {member.filename}")
    except UnreadableDocumentError:
        raise
    except Exception as error:  # damage makes zipfile raise a dozen kinds
        raise _damaged(name, str(error) or type(error).__name__) from error


def _members(archive: zipfile.ZipFile, name: str, max_bytes: int) -> list[zipfile.ZipInfo]:
    """The files of an archive that may hold conversations; their names are never used as paths."""
    members = [
        member
        for member in archive.infolist()
        if PurePath(member.filename).suffix.lower() in SUFFIXES - {".zip"}
        and not member.is_dir()
        and member.compress_type in _METHODS
    ]
    size = sum(member.file_size for member in members)  # no more than this is unpacked
    if size > max_bytes:
        raise UnreadableDocumentError(
            f"{name!r} cannot be read. Its JSON unpacks to too much: {size:,} bytes; at most"
            f" {max_bytes:,} are read.",
            suggestions=("Unpack it, and import the files that hold conversations.",),
        )
    return sorted(members, key=lambda member: member.filename)


def _conversations(stream: IO[bytes], name: str) -> Iterator[Conversation | None]:
    """Those of one JSON file, which is closed after them."""
    begun = False
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace") as text:
        try:
            for value in _values(text):
                found = _conversation(value)
                if found is None and not begun:
                    return
                begun = True
                yield found
        except (ValueError, RecursionError) as error:
            if begun:
                raise _damaged(name, str(error)) from error


def _conversation(value: object) -> Conversation | None:
    if not isinstance(value, dict):
        return None
    return next((found for read in _READERS if (found := read(value)) is not None), None)


def _values(text: TextIO) -> Iterator[object]:
    """The values in a JSON list, or of a text that is one value after another.

    Raises:
        ValueError: Where something else stands, or a value is too long.
        RecursionError: If a value is nested too deeply.
    """
    decoder = json.JSONDecoder()
    buffer, at = "", 0
    while True:
        at = _BETWEEN.match(buffer, at).end()  # type: ignore[union-attr]  # it matches nothing too
        try:
            value, end = decoder.raw_decode(buffer, at)
        except ValueError as error:
            held = len(buffer) - at
            if held > MAX_CONVERSATION_CHARS:
                raise ValueError(
                    f"a value has more than {MAX_CONVERSATION_CHARS:,} characters"
                ) from error
            more = text.read(max(_CHUNK_CHARS, held))  # twice as much each time: linear altogether
            if not more:
                if held:
                    raise
                return
            buffer, at = buffer[at:] + more, 0
        else:
            yield value
            at = end


def _damaged(name: str, reason: str) -> UnreadableDocumentError:
    return UnreadableDocumentError(
        f"{name!r} cannot be read to its end. It is damaged: {reason[:200]}",
        suggestions=("Download the export again; what stands before that place was read.",),
    )
