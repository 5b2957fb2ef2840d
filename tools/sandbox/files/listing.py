"""The entries of an open directory, level by level, without following links."""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tools.sandbox.files.nofollow import open_below

EntryType = Literal["file", "directory", "symlink", "other"]


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
    leaves_out: Callable[[str], bool] | None = None,
) -> Listing:
    """Lists an open directory.

    Nearest levels come first, so that one large subdirectory does not crowd out its siblings.

    `prefix` is put before each path. `hides` decides which directories are not listed, and
    `leaves_out` which paths below the directory are omitted.
    """
    listing = Listing([], truncated=False, unreadable=[])
    waiting: deque[tuple[str, ...]] = deque([()])
    while waiting:
        parts = waiting.popleft()
        room = limit - len(listing.entries)
        try:
            fd = open_below(top, parts)
            try:
                if parts and hides(os.fstat(fd)):
                    raise PermissionError
                found = _entries(fd, room + 1, _name_filter(parts, leaves_out))
            finally:
                os.close(fd)
        except OSError:
            if not parts:
                raise
            listing.unreadable.append(_join(prefix, parts))
            continue
        for name, status in found[:room]:
            here = (*parts, name)
            entry = _entry(_join(prefix, here), status)
            listing.entries.append(entry)
            if entry.type == "directory" and len(here) < depth:
                waiting.append(here)
        if len(found) > room:
            return Listing(listing.entries, truncated=True, unreadable=listing.unreadable)
    return listing


def _name_filter(
    parts: tuple[str, ...], leaves_out: Callable[[str], bool] | None
) -> Callable[[str], bool]:
    if leaves_out is None:
        return lambda _name: True
    return lambda name: not leaves_out("/".join((*parts, name)))


def _entries(fd: int, count: int, shown: Callable[[str], bool]) -> list[tuple[str, os.stat_result]]:
    """Returns the first names of a directory in order, however many there are."""
    with os.scandir(fd) as iterator:
        names = heapq.nsmallest(count, (each.name for each in iterator if shown(each.name)))
    found = []
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            found.append((name, os.stat(name, dir_fd=fd, follow_symlinks=False)))
    return found


def _entry(path: str, status: os.stat_result) -> Entry:
    kinds: dict[int, EntryType] = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "directory",
        stat.S_IFLNK: "symlink",
    }
    kind = kinds.get(stat.S_IFMT(status.st_mode), "other")
    return Entry(path, kind, status.st_size if kind == "file" else 0, status.st_mtime)


def _join(prefix: str, parts: tuple[str, ...]) -> str:
    return "/".join(parts if prefix == "." else (prefix, *parts))
