"""Chat exports: reads the conversations of a downloaded file, one at a time.

The file is JSON (a list, or one value per line), or a zip archive of such files. Exports can exceed
a gigabyte, so only one conversation is in memory, and everything before a damaged part is read.
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
from storage.reading.chat_formats import read_chatgpt, read_claude
from storage.reading.conversations import Conversation, read_plain

MAX_CONVERSATION_CHARS = 64_000_000  # maximum characters of JSON of one conversation
MAX_UNPACKED_BYTES = 8_000_000_000  # maximum bytes of JSON that an archive may unpack to
# The suffixes of files that may be exports.
SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".zip"})
_CHUNK_CHARS = 1 << 20
_BETWEEN = re.compile(r"[\s,\[\]]*")
_READERS = (read_chatgpt, read_claude, read_plain)
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # others may unpack without limit


def read_export(
    file: IO[bytes], *, name: str, max_bytes: int = MAX_UNPACKED_BYTES
) -> Generator[Conversation | None, None, None]:
    """Reads the conversations in a file; yields nothing if it is not a chat export.

    It yields None for a value that is not a conversation. The file is read lazily and then closed;
    its name's suffix distinguishes an archive from JSON. What was read before an
    UnreadableDocumentError is valid.
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
    except Exception as error:  # zipfile raises many types for damaged files
        raise _damage_error(name, str(error) or type(error).__name__) from error


def _members(archive: zipfile.ZipFile, name: str, max_bytes: int) -> list[zipfile.ZipInfo]:
    """Returns an archive's files with possible conversations; names are never used as paths."""
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
    begun = False
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace") as text:
        try:
            for value in _values(text):
                read = (reader(value) for reader in _READERS if isinstance(value, dict))
                found = next((each for each in read if each is not None), None)
                if found is None and not begun:
                    return
                begun = True
                yield found
        except (ValueError, RecursionError) as error:
            if begun:
                raise _damage_error(name, str(error)) from error


def _values(text: TextIO) -> Iterator[object]:
    """Yields the values of a JSON list, or of a text with one value after another."""
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
            more = text.read(max(_CHUNK_CHARS, held))  # doubling keeps it linear
            if not more:
                if held:
                    raise
                return
            buffer, at = buffer[at:] + more, 0
        else:
            yield value
            at = end


def _damage_error(name: str, reason: str) -> UnreadableDocumentError:
    return UnreadableDocumentError(
        f"{name!r} cannot be read to its end. It is damaged: {reason[:200]}",
        suggestions=("Download the export again; everything before the damage was read.",),
    )
