"""Appends lines to the audit log, rotates it, and reads its entries across the rotated files."""

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

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
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


class AuditFile:
    """Appends lines, each with a single write, so that lines of several processes never mix.

    A full file becomes `NAME.1`, that one `NAME.2`, and so on. The first process to notice rotates;
    the others see another file under the name and open it.
    """

    def __init__(self, path: Path, *, max_bytes: int, backups: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._descriptor: int | None = None
        self._opened: tuple[int, int] | None = None
        self._torn = False

    def append(self, line: bytes) -> None:
        """Appends one line, given without its newline; never waits for another process."""
        descriptor = self._at_end_of(len(line) + 1)
        data = (b"\n" if self._torn else b"") + line + b"\n"
        self._torn = True
        written = os.write(descriptor, data)
        if written < len(data):
            raise OSError(f"{self._path}: {written} of {len(data)} bytes could be written")
        self._torn = False

    def close(self) -> None:
        """Closes the file; the next line opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _at_end_of(self, more: int) -> int:
        """Returns the file's current descriptor, rotating first if it would get too large."""
        try:
            now = self._path.lstat()
        except FileNotFoundError:
            return self._open()
        descriptor = self._descriptor
        if descriptor is None or self._opened != (now.st_dev, now.st_ino):
            descriptor = self._open()
            now = os.fstat(descriptor)
        if now.st_size and now.st_size + more > self._max_bytes:
            self._rotate()
            return self._open()
        return descriptor

    def _open(self) -> int:
        self.close()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path, _FLAGS, 0o600)
        try:
            found = os.fstat(descriptor)
            _check_file(self._path, found)
            if stat.S_IMODE(found.st_mode) & 0o077:
                os.fchmod(descriptor, 0o600)
            # Another process may be in the middle of its line; then we add a harmless empty line.
            self._torn = found.st_size > 0 and os.pread(descriptor, 1, found.st_size - 1) != b"\n"
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor, self._opened = descriptor, (found.st_dev, found.st_ino)
        return descriptor

    def _rotate(self) -> None:
        """Renames every file to the next number, unless another process is rotating now."""
        with unrotated(self._path, wait=False) as held:
            if not held or not self._is_still_there():
                return
            for number, path in sorted(_numbered(self._path).items(), reverse=True):
                if number >= self._backups:
                    path.unlink()
                else:
                    path.rename(_rotated(self._path, number + 1))
            self._path.rename(_rotated(self._path, 1))

    def _is_still_there(self) -> bool:
        with suppress(FileNotFoundError):
            now = self._path.lstat()
            return (now.st_dev, now.st_ino) == self._opened
        return False


def unrotated(path: Path, *, wait: bool) -> AbstractContextManager[bool]:
    """Prevents other processes from rotating a log inside the block.

    Yields whether it could: without `wait` it gives up if another process holds the lock.
    """
    return locked(path.with_name(f"{path.name}.lock"), wait=wait)


def rotated(path: Path) -> list[Path]:
    """Returns the existing files of a log, newest first."""
    before = [found for _, found in sorted(_numbered(path).items())]
    return [*([path] if os.path.lexists(path) else []), *before]


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


def _rotated(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _numbered(path: Path) -> dict[int, Path]:
    name = re.compile(re.escape(path.name) + r"\.([1-9][0-9]{0,5})")
    with suppress(FileNotFoundError):
        found = [(name.fullmatch(each.name), each) for each in path.parent.iterdir()]
        return {int(match[1]): each for match, each in found if match}
    return {}
