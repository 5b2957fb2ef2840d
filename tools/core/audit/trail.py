"""What the audit log says: its lines over all of its files, the last ones first or as they come."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from tools.core.audit.audit import opened, rotated, unrotated

Entry = dict[str, Any]
Wanted = Callable[[Entry], bool]

BLOCK = 262_144
_BEGINNING = b'{"time":'


class AuditTrail:
    """Reads the files of an audit log, which other processes append to and rotate meanwhile.

    Args:
        path: The log; its rotated files lie beside it.

    Attributes:
        unreadable: Lines so far that are no entry, such as one that a full disk cut short.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[tuple[int, int], int] = {}
        self.unreadable = 0

    def last(self, count: int, wanted: Wanted, *, since: float | None = None) -> list[Entry]:
        """The last entries that are wanted, in the order in which they were written.

        What is appended from now on is what `news` begins with.

        Args:
            count: How many, at most.
            wanted: Whether one is.
            since: Unix seconds; files that were last written before hold nothing wanted.

        Raises:
            OSError: If the log cannot be read.
        """
        found: list[Entry] = []
        with self._files() as files:
            for path in files:
                with opened(path) as file:
                    now = os.fstat(file.fileno())
                    self._read[now.st_dev, now.st_ino] = end = _whole_lines(file, now.st_size)
                    if since is None or now.st_mtime >= since:
                        wanted_here = filter(wanted, self._parsed(_backwards(file, end)))
                        found += islice(wanted_here, count - len(found))
        return found[::-1]

    def news(self) -> list[Entry]:
        """What was appended since this was last asked, also to files that were rotated meanwhile.

        Raises:
            OSError: If the log cannot be read.
        """
        found: list[Entry] = []
        read: dict[tuple[int, int], int] = {}
        with self._files() as files:
            for path in reversed(files):
                now = path.lstat()
                at = self._read.get((now.st_dev, now.st_ino), 0)
                at = at if at <= now.st_size else 0  # another file by the number of a removed one
                if at < now.st_size:
                    at, lines = _appended(path, at, now.st_size)
                    found += self._parsed(lines)
                read[now.st_dev, now.st_ino] = at
        self._read = read
        return found

    @contextmanager
    def _files(self) -> Iterator[list[Path]]:
        """The files, the newest first; they keep their names for the length of the block."""
        if not self._path.parent.is_dir():
            yield []
            return
        with unrotated(self._path, wait=True):
            yield rotated(self._path)

    def _parsed(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        for line in lines:
            entry = _entry(line)
            if entry is not None:
                yield entry
            elif line.strip():
                self.unreadable += 1


def _entry(line: bytes) -> Entry | None:
    """The entry of a line, also behind the rest of one that was cut short."""
    for text in (line, line[max(0, line.rfind(_BEGINNING)) :]):
        with suppress(ValueError, RecursionError):
            entry = json.loads(text)
            return entry if isinstance(entry, dict) and isinstance(entry.get("time"), str) else None
    return None


def _appended(path: Path, at: int, size: int) -> tuple[int, list[bytes]]:
    """Where the whole lines of a file end, and those after a place."""
    with opened(path) as file:
        end = max(at, _whole_lines(file, size))
        file.seek(at)
        return end, file.read(end - at).split(b"\n")


def _whole_lines(file: BinaryIO, size: int) -> int:
    """Where the last whole line ends, of so many bytes."""
    end = size
    while end:
        start = max(0, end - BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _backwards(file: BinaryIO, end: int) -> Iterator[bytes]:
    """The lines before a place, the last one first."""
    rest = b""
    while end:
        start = max(0, end - BLOCK)
        file.seek(start)
        first, *others = (file.read(end - start) + rest).split(b"\n")
        yield from reversed(others)
        rest, end = first, start
    yield rest
