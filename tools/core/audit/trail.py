"""Reads the entries of the audit log across its rotated files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from tools.core.audit.audit import open_log, rotated, unrotated

Entry = dict[str, Any]
Wanted = Callable[[Entry], bool]

BLOCK = 262_144
_BEGINNING = b'{"time":'


class AuditTrail:
    """Reads an audit log while other processes append to it and rotate it.

    Attributes:
        unreadable: How many lines so far were not entries, for example truncated by a full disk.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[tuple[int, int], int] = {}
        self.unreadable = 0

    def last(self, count: int, wanted: Wanted, *, since: float | None = None) -> list[Entry]:
        """Returns the last matching entries in the order in which they were written.

        A later `news` returns what is appended from now on.
        """
        found: list[Entry] = []
        with self._files() as files:
            for path in files:
                with open_log(path) as file:
                    now = os.fstat(file.fileno())
                    self._read[now.st_dev, now.st_ino] = end = _whole_lines(file, now.st_size)
                    if since is None or now.st_mtime >= since:
                        wanted_here = filter(wanted, self._parsed(_backwards(file, end)))
                        found += islice(wanted_here, count - len(found))
        return found[::-1]

    def news(self) -> list[Entry]:
        """Returns the entries appended since the last read, including in files rotated since."""
        found: list[Entry] = []
        read: dict[tuple[int, int], int] = {}
        with self._files() as files:
            for path in reversed(files):
                now = path.lstat()
                at = self._read.get((now.st_dev, now.st_ino), 0)
                at = at if at <= now.st_size else 0  # a new file reused a removed file's inode
                if at < now.st_size:
                    at, lines = _appended(path, at, now.st_size)
                    found += self._parsed(lines)
                read[now.st_dev, now.st_ino] = at
        self._read = read
        return found

    @contextmanager
    def _files(self) -> Iterator[list[Path]]:
        """Yields the files, newest first; they are not renamed inside the block."""
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
    """Parses a line; the entry may follow the remains of a truncated line."""
    for text in (line, line[max(0, line.rfind(_BEGINNING)) :]):
        with suppress(ValueError, RecursionError):
            entry = json.loads(text)
            return entry if isinstance(entry, dict) and isinstance(entry.get("time"), str) else None
    return None


def _appended(path: Path, at: int, size: int) -> tuple[int, list[bytes]]:
    """Returns where a file's last complete line ends, and the lines from `at` to there."""
    with open_log(path) as file:
        end = max(at, _whole_lines(file, size))
        file.seek(at)
        return end, file.read(end - at).split(b"\n")


def _whole_lines(file: BinaryIO, size: int) -> int:
    """Returns where the last complete line ends within the first `size` bytes."""
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
    """Yields the lines before a position, the last one first."""
    rest = b""
    while end:
        start = max(0, end - BLOCK)
        file.seek(start)
        first, *others = (file.read(end - start) + rest).split(b"\n")
        yield from reversed(others)
        rest, end = first, start
    yield rest
