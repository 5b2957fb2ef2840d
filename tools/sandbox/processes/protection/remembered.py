"""What closed places hold: enough of it to see a change, and to put it back."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.sandbox.processes.protection.closed import Survey, opened

__all__ = ["Entry", "remember"]

MOST_ENTRIES = 5_000
"""Files, directories and links that are remembered of one root."""

MOST_BYTES = 262_144
"""Longest file whose content is remembered."""

_DEEPEST = 32
"""Levels of directories below a closed place that are looked at."""

_SETTLED_NS = 2_500_000_000
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory or link at a closed place.

    Attributes:
        folder: The directory whose entry is closed to writes, relative to the root.
        mode: Its kind and its rights, as stat(2) has them.
        signature: What a change of it would change.
        is_settled: Whether a later change must have another signature.
        content: What a file holds, or where a link leads; None where it is too long.
    """

    folder: str
    mode: int
    signature: tuple[int, ...]
    is_settled: bool
    content: bytes | None

    @property
    def is_folder(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.mode)

    def same_as(self, other: Entry) -> bool:
        """Whether nothing of it that matters is different."""
        if self.is_folder:
            return self.mode == other.mode
        if self.mode != other.mode or self.content != other.content:
            return False
        return self.content is not None or self.signature == other.signature


def remember(
    root: int, found: Survey, known: Mapping[str, Entry], *, rights: int = 0
) -> dict[str, Entry]:
    """What the closed places hold now.

    Args:
        root: Descriptor of the root.
        found: Where they are.
        known: What was remembered before; what has not changed since is not read again.
        rights: What the owner is given of each directory that is read, as `opened` has it.

    Returns:
        The entries by their path relative to the root, each directory before what is in it.
    """
    entries: dict[str, Entry] = {}
    for folder, name in found.closed():
        with contextlib.suppress(OSError), opened(root, folder) as fd:
            prefix = f"{folder}/" if folder else ""
            is_hooks = name == "hooks" and found.folders[folder].is_git
            # Git puts samples into the hooks of every repository, and never runs them.
            without = ".sample" if is_hooks else None
            for path, entry in _tree(fd, folder, prefix, name, known, rights, without):
                entries[path] = entry
                if len(entries) >= MOST_ENTRIES:
                    return entries
    return entries


def _tree(
    directory: int,
    folder: str,
    prefix: str,
    name: str,
    known: Mapping[str, Entry],
    rights: int,
    without: str | None,
    depth: int = 0,
) -> Iterator[tuple[str, Entry]]:
    """What is at a place and below it, but for regular files whose names end in some way."""
    path = prefix + name
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if without and name.endswith(without) and stat.S_ISREG(status.st_mode):
            return
        entry = _entry(directory, name, folder, status, known.get(path))
    except OSError:
        return  # Gone meanwhile.
    yield path, entry
    if entry.is_folder and depth < _DEEPEST:
        with contextlib.suppress(OSError), opened(directory, name, rights=rights) as fd:
            for each in sorted(os.listdir(fd)):  # noqa: PTH208  # a descriptor
                yield from _tree(fd, folder, f"{path}/", each, known, rights, without, depth + 1)


def _entry(
    directory: int, name: str, folder: str, status: os.stat_result, known: Entry | None
) -> Entry:
    signature = _signature(status)
    if known is not None and known.is_settled and known.signature == signature:
        return known
    content: bytes | None = b""
    if stat.S_ISLNK(status.st_mode):
        content = os.fsencode(os.readlink(name, dir_fd=directory))
    elif stat.S_ISREG(status.st_mode):
        content = _content(directory, name)
    is_settled = time.time_ns() - status.st_ctime_ns > _SETTLED_NS
    return Entry(folder, status.st_mode, signature, is_settled, content)


def _content(directory: int, name: str) -> bytes | None:
    try:
        with os.fdopen(os.open(name, _READ, dir_fd=directory), "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(MOST_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= MOST_BYTES else None


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
