"""Lists an open directory, without following links."""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tools.sandbox.files.openat import open_below

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
