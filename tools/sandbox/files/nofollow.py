"""Opens paths inside an open directory, name by name and without following links; reads files."""

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

    Raises ELOOP or ENOTDIR for a link on the way.
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
    """Opens a directory inside an open one for reading its entries.

    Raises ELOOP or ENOTDIR for a link.
    """
    return os.open(name, _DIRECTORY, dir_fd=directory)


class Descent:
    """Opens the directories of a walk, each from the nearest one still open."""

    def __init__(self, root: int, open_name: Callable[[int, str], int] = open_name) -> None:
        self._open_name = open_name
        self._opened = [("", open_below(root))]
        """The root and the open directories below it, with their names."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._close(0)

    def open(self, path: str) -> int:
        """Opens a directory, which stays open until the next call."""
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
    """Opens a regular file and returns its descriptor and status; never blocks on pipes or devices.

    Raises ELOOP for a link, and ENXIO for anything but a regular file.
    """
    fd = os.open(name, _FILE, dir_fd=directory)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise OSError(errno.ENXIO, "not a regular file")
    return fd, status


def read_up_to(fd: int, count: int, size: int) -> bytes:
    """Returns the first `count` bytes of an open file.

    `size` is its size when opened; it may have grown.
    """
    chunks = list[bytes]()
    found, asked = 0, min(size + 1, count)  # one more than its size, to see the end at once
    while asked > 0 and (chunk := os.read(fd, asked)):
        chunks.append(chunk)
        found += len(chunk)
        if len(chunk) < asked and found >= size > 0:  # files in /proc report size 0
            break
        asked = min(_CHUNK_BYTES, count - found)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
