"""Opens, reads and lists inside an open directory, without following links."""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Self

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


EntryType = Literal["file", "directory", "symlink", "other"]

_TYPES: dict[int, EntryType] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    path: str  # relative to the root
    type: EntryType
    size: int  # size in bytes; 0 unless it is a file
    mtime: float  # time of the last change, Unix seconds


@dataclass(frozen=True, slots=True)
class Listing:
    """The entries of a directory."""

    entries: list[Entry]  # level by level, sorted within each directory
    truncated: bool
    unreadable: list[str]  # directories that are not listed: no permission, or protected


def list_entries(
    top: int,
    prefix: str,
    *,
    depth: int,
    limit: int,
    hides: Callable[[os.stat_result], bool],
    leaves_out: Callable[[str], bool],
) -> Listing:
    """Lists an open directory.

    Nearest levels come first, so that one large subdirectory does not crowd out its siblings.

    `prefix` is put before each path. `hides` decides which directories are not listed, and
    `leaves_out` which paths below the directory are omitted.
    """
    listing = Listing([], truncated=False, unreadable=[])
    before = "" if prefix == "." else f"{prefix}/"
    waiting = deque([""])  # directories below the top, with a slash at the end
    while waiting:
        folder = waiting.popleft()
        room = limit - len(listing.entries)
        try:
            fd = open_below(top, folder.split("/")[:-1])
            try:
                if folder and hides(os.fstat(fd)):
                    raise PermissionError
                found = _first_entries(fd, folder, room + 1, leaves_out)
            finally:
                os.close(fd)
        except OSError:
            if not folder:
                raise
            listing.unreadable.append(before + folder.removesuffix("/"))
            continue
        for path, status in found[:room]:
            kind = _TYPES.get(stat.S_IFMT(status.st_mode), "other")
            size = status.st_size if kind == "file" else 0
            listing.entries.append(Entry(before + path, kind, size, status.st_mtime))
            if kind == "directory" and path.count("/") + 1 < depth:
                waiting.append(f"{path}/")
        if len(found) > room:
            return Listing(listing.entries, truncated=True, unreadable=listing.unreadable)
    return listing


def _first_entries(
    fd: int, folder: str, count: int, leaves_out: Callable[[str], bool]
) -> list[tuple[str, os.stat_result]]:
    """Returns the first paths of a directory in order, however many there are."""
    with os.scandir(fd) as scan:
        paths = (folder + each.name for each in scan)
        first = heapq.nsmallest(count, (path for path in paths if not leaves_out(path)))
    found = []
    for path in first:
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            name = path.removeprefix(folder)
            found.append((path, os.stat(name, dir_fd=fd, follow_symlinks=False)))
    return found
