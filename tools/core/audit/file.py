"""A file that lines are only ever appended to, by several processes, and that is rotated."""

from __future__ import annotations

import os
import re
import stat
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import BinaryIO

from storage.locks import locked

__all__ = ["AuditFile", "opened", "rotated", "unrotated"]

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class AuditFile:
    """Appends lines, each with one write, so that those of several processes never mix.

    A file that has reached its size becomes `NAME.1`, that one `NAME.2`, and so on. Whichever
    process is first does it; the others find another file under the name, and open that.

    Args:
        path: The file; it and its directory are made, for their owner alone.
        max_bytes: Size after which it is rotated.
        backups: Rotated files that are kept.
    """

    def __init__(self, path: Path, *, max_bytes: int, backups: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._descriptor: int | None = None
        self._opened: tuple[int, int] | None = None
        self._torn = False

    def append(self, line: bytes) -> None:
        """Appends one line; waits for no other process.

        Args:
            line: Without its end.

        Raises:
            OSError: If it cannot be written whole. The next line starts on a line of its own.
        """
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
        """The file that has the name now, rotated where so many bytes more are too many."""
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
            # Or another process is in the middle of its line: an empty one does no harm.
            self._torn = found.st_size > 0 and os.pread(descriptor, 1, found.st_size - 1) != b"\n"
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor, self._opened = descriptor, (found.st_dev, found.st_ino)
        return descriptor

    def _rotate(self) -> None:
        """Moves every file one number on, unless another process does so at this moment."""
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
    """Keeps every other process from rotating a log, for the length of the block.

    Args:
        path: The log; its directory is there.
        wait: Whether to wait for another process that does the same, or to do without.

    Returns:
        A context that yields whether it is kept, and raises OSError where it cannot be.
    """
    return locked(path.with_name(f"{path.name}.lock"), wait=wait)


def rotated(path: Path) -> list[Path]:
    """The files of a log, the newest first: the one that has the name, and those before it."""
    before = [found for _, found in sorted(_numbered(path).items())]
    return [*([path] if os.path.lexists(path) else []), *before]


def opened(path: Path) -> BinaryIO:
    """A file of a log, to be read.

    Raises:
        OSError: If it cannot be read, or is none, as no line was written to it then: a link, a
            directory, or a pipe, which would be waited for.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_file(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path} is no file")


def _rotated(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _numbered(path: Path) -> dict[int, Path]:
    name = re.compile(re.escape(path.name) + r"\.([1-9][0-9]{0,5})")
    with suppress(FileNotFoundError):
        found = [(name.fullmatch(each.name), each) for each in path.parent.iterdir()]
        return {int(match[1]): each for match, each in found if match}
    return {}
