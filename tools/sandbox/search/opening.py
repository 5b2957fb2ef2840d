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


def open_file(name: str, directory: int) -> tuple[int, os.stat_result]:
    """Opens a regular file; a pipe or a device does not hold it up.

    Returns:
        Its descriptor and status.

    Raises:
        OSError: If it cannot be opened; ELOOP if it is a link, ENXIO if it is no regular file.
    """
    fd = os.open(name, _FILE, dir_fd=directory)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise OSError(errno.ENXIO, "not a regular file")
    return fd, status


class Ladder:
    """Directories that are open one beneath the other, for files that come in the order of a walk.

    Args:
        top: Descriptor of the directory that it stands in; the caller keeps and closes it.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._above: str | None = ""
        """The path of where it stands; None where it could not get there."""
        self._parts: list[str] = []
        self._opened: list[int] = []

    def open(self, path: str) -> tuple[int, os.stat_result]:
        """Opens a regular file by its path beneath the top, as `open_file` does.

        Raises:
            OSError: As `open_directory` and `open_file`.
        """
        return open_file(*self._step(path))

    def close(self) -> None:
        """Closes what is open, but for the top."""
        self._stand_in(())
        self._above = ""

    def _step(self, path: str) -> tuple[str, int]:
        """The last name of a path, and the directory that it is in."""
        above, _, name = path.rpartition("/")
        if above != self._above:
            self._above = None
            self._stand_in(above.split("/") if above else ())
            self._above = above
        return name, self._opened[-1] if self._opened else self._top

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
