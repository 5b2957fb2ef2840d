"""The files of the audit log: rotates them, and reads their entries."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from storage.locks import locked

Entry = dict[str, Any]
Wanted = Callable[[Entry], bool]

BLOCK = 262_144
_BEGINNING = b'{"time":'
_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


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


def unrotated(path: Path, *, wait: bool) -> AbstractContextManager[bool]:
    """Prevents other processes from rotating a log inside the block.

    Yields whether it could: without `wait` it gives up if another process holds the lock.
    """
    return locked(path.with_name(f"{path.name}.lock"), wait=wait)


def rotated(path: Path) -> list[Path]:
    """Returns the existing files of a log, newest first."""
    before = [found for _, found in sorted(_numbered(path).items())]
    return [*([path] if os.path.lexists(path) else []), *before]


def open_to_append(path: Path) -> tuple[int, os.stat_result, bool]:
    """Opens a log file, or creates it for this user alone.

    Returns its descriptor and status, and whether its last line is incomplete: another process may
    be in the middle of it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, _APPENDING, 0o600)
    try:
        found = os.fstat(descriptor)
        _check_file(path, found)
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(descriptor, 0o600)
        is_torn = found.st_size > 0 and os.pread(descriptor, 1, found.st_size - 1) != b"\n"
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found, is_torn


def open_log(path: Path) -> BinaryIO:
    """Opens a log file for reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_file(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path} is not a regular file")


def rotate(path: Path, backups: int) -> None:
    """Renames every file of a log to the next number, and removes the oldest."""
    for number, each in sorted(_numbered(path).items(), reverse=True):
        if number >= backups:
            each.unlink()
        else:
            each.rename(_rotated(path, number + 1))
    path.rename(_rotated(path, 1))


def _rotated(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _numbered(path: Path) -> dict[int, Path]:
    name = re.compile(re.escape(path.name) + r"\.([1-9][0-9]{0,5})")
    with suppress(FileNotFoundError):
        found = [(name.fullmatch(each.name), each) for each in path.parent.iterdir()]
        return {int(match[1]): each for match, each in found if match}
    return {}
