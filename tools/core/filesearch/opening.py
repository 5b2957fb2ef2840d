"""Opening beneath an open directory, one name at a time and never through a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

__all__ = ["Ladder", "open_directory", "open_file"]

_CLOSED_ON_EXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOSED_ON_EXEC
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _CLOSED_ON_EXEC


def open_directory(name: str, directory: int) -> int:
    """Opens a directory for reading its entries.

    Args:
        name: One name, or "." for the open directory itself.
        directory: Descriptor of the directory that it is in.

    Raises:
        OSError: If it cannot be opened; ELOOP or ENOTDIR if it is a link.
    """
    return os.open(name, _DIRECTORY, dir_fd=directory)


def open_file(name: str, directory: int) -> int:
    """Opens a regular file; a pipe or a device does not hold it up.

    Raises:
        OSError: If it cannot be opened; ELOOP if it is a link, ENXIO if it is no regular file.
    """
    fd = os.open(name, _FILE, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ENXIO, "not a regular file")
    return fd


class Ladder:
    """Directories that are open one beneath the other, for files that come in the order of a walk.

    Args:
        top: Descriptor of the directory that it stands in; the caller keeps and closes it.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._parts: list[str] = []
        self._opened: list[int] = []

    def open(self, path: str) -> int:
        """Opens a regular file by its path beneath the top.

        Raises:
            OSError: As `open_directory` and `open_file`.
        """
        *directories, name = path.split("/")
        self._stand_in(directories)
        return open_file(name, self._opened[-1] if self._opened else self._top)

    def close(self) -> None:
        """Closes what is open, but for the top."""
        self._stand_in(())

    def _stand_in(self, directories: Sequence[str]) -> None:
        shared = 0
        for ours, theirs in zip(self._parts, directories, strict=False):
            if ours != theirs:
                break
            shared += 1
        while len(self._opened) > shared:
            os.close(self._opened.pop())
            self._parts.pop()
        for part in directories[shared:]:
            above = self._opened[-1] if self._opened else self._top
            self._opened.append(open_directory(part, above))
            self._parts.append(part)
