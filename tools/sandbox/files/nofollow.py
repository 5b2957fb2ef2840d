"""Opening beneath an open directory, one name at a time and never through a link; reading."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from typing import Self

_CHUNK_BYTES = 1 << 20

_NOFOLLOW = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _NOFOLLOW


def open_below(directory: int, names: Iterable[str] = ()) -> int:
    """Opens a directory for reading its entries.

    Args:
        directory: Descriptor of the directory where the way begins.
        names: The names on the way down; none for the open directory itself.

    Raises:
        OSError: If it cannot be opened; ELOOP or ENOTDIR if there is a link on the way.
    """
    fd = os.open(".", _DIRECTORY, dir_fd=directory)
    try:
        for name in names:
            below = open_name(fd, name)
            os.close(fd)
            fd = below
    except OSError:
        os.close(fd)
        raise
    return fd


def open_name(directory: int, name: str) -> int:
    """Opens a directory in an open one for reading its entries.

    Raises:
        OSError: If it cannot be opened; ELOOP or ENOTDIR if it is a link.
    """
    return os.open(name, _DIRECTORY, dir_fd=directory)


class Descent:
    """Opens the directories of a walk by their paths, each from the nearest one that is still open.

    Args:
        root: Descriptor of the directory where the paths begin.
        open_name: Opens one of the names in a directory; by default any that is no link.
    """

    def __init__(self, root: int, open_name: Callable[[int, str], int] = open_name) -> None:
        self._open_name = open_name
        self._opened = [("", open_below(root))]
        """The root, and the directories between it and the last one, by their names."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._close(0)

    def open(self, path: str) -> int:
        """Opens a directory; it stays open until the next one is.

        Raises:
            OSError: If it cannot be opened, or a link is on the way.
        """
        parts = path.split("/") if path else []
        shared = 0
        for (name, _), part in zip(self._opened[1:], parts, strict=False):
            if name != part:
                break
            shared += 1
        self._close(1 + shared)
        for part in parts[shared:]:
            self._opened.append((part, self._open_name(self._opened[-1][1], part)))
        return self._opened[-1][1]

    def _close(self, kept: int) -> None:
        while len(self._opened) > kept:
            os.close(self._opened.pop()[1])


def open_file(name: str, directory: int) -> tuple[int, os.stat_result]:
    """Opens a regular file and returns its descriptor and status; no pipe or device blocks it.

    Raises:
        OSError: If it cannot be opened; ELOOP if it is a link, ENXIO if it is no regular file.
    """
    fd = os.open(name, _FILE, dir_fd=directory)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise OSError(errno.ENXIO, "not a regular file")
    return fd, status


def read_up_to(fd: int, count: int, size: int) -> bytes:
    """Returns the first `count` bytes of an open file.

    Args:
        fd: Its descriptor.
        count: Bytes at most.
        size: Bytes that it had when it was opened; it may have grown.
    """
    chunks = list[bytes]()
    found, asked = 0, min(size + 1, count)  # One more than there is: the end is seen at once.
    while asked > 0 and (chunk := os.read(fd, asked)):
        chunks.append(chunk)
        found += len(chunk)
        if len(chunk) < asked and found >= size > 0:  # /proc says 0, whatever is there.
            break
        asked = min(_CHUNK_BYTES, count - found)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
