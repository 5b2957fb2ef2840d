"""Write-protected paths in a root, which other programs obey, and a snapshot of what they hold.

They are found by a walk that follows no link. Beside the names of `obeyed.CLOSED_TO_WRITES`, they
are the hooks and the settings of every directory that git takes for a repository; what is in a
repository is walked like all else, since a few names make one of any directory. A directory that
has not changed since the last walk is not read again: that costs one look at its times.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tools.sandbox.files.nofollow import open_file
from tools.sandbox.files.openat import identity
from tools.sandbox.files.protected_names import CLOSED_TO_WRITES, REPOSITORY_MARKS, folded

__all__ = ["Entry", "Folder", "Scan", "grant_owner", "open_folder", "scan", "take_snapshot"]

MOST_FOLDERS = 4_000
"""Directories that a walk reads anew, those near the root first."""

DEEPEST = 128
"""Levels of directories that are walked: each is opened from the root down."""

MOST_ENTRIES = 5_000
"""Files, directories and links that are remembered in one root."""

MOST_BYTES = 262_144
"""Bytes of the longest file whose content is remembered."""

_DEEPEST_ENTRY = 32
"""Levels of directories below a write-protected path that are remembered."""

_SETTLED_NS = 2_500_000_000
"""How long a directory must have been unchanged for its times to prove it, in nanoseconds."""

_READ_DIRECTORY = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
)

_RULES = {
    last: [tuple(map(folded, rule[:-1])) for rule in CLOSED_TO_WRITES if folded(rule[-1]) == last]
    for last in {folded(rule[-1]) for rule in CLOSED_TO_WRITES} - {".git"}
}
"""The names that precede the last one of each write-protected path, by that last name."""

_PARENTS = {
    tuple(map(folded, rule[:end])) for rule in CLOSED_TO_WRITES for end in range(1, len(rule))
}
"""The directories that those lie in: a link in place of one would lead to others."""

_MARKS = (*REPOSITORY_MARKS, frozenset({"objects", "refs"}))
"""Also those of a directory that the `commondir` of a repository leads to."""

_OF_GIT = frozenset({"config", "config.worktree", "hooks"})


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory as it was read.

    Attributes:
        identity: Its device and inode.
        changed: Time of its last change, nanoseconds.
        is_settled: Whether a later change must have another time.
        folders: Names of the directories in it that are walked.
        protected: Names in it that are write-protected.
        is_git: Whether git takes it for a repository.
    """

    identity: tuple[int, int]
    changed: int
    is_settled: bool
    folders: tuple[str, ...]
    protected: tuple[str, ...]
    is_git: bool


@dataclass(slots=True)
class Scan:
    """The result of a walk.

    Attributes:
        folders: The directories by their path relative to the root, which is the empty one.
        is_complete: Whether all directories were read.
    """

    folders: dict[str, Folder] = field(default_factory=dict)
    is_complete: bool = True

    def protected(self) -> Iterator[tuple[str, str]]:
        """Yields the directory and the name of each write-protected path."""
        for path, folder in self.folders.items():
            for name in folder.protected:
                yield path, name

    def repositories(self) -> Iterator[str]:
        """Yields the `.git` directories."""
        for path, folder in self.folders.items():
            if folder.is_git and path.rpartition("/")[2] == ".git":
                yield path


@dataclass(frozen=True, slots=True)
class Entry:
    """A write-protected file, directory or link.

    Attributes:
        folder: The directory whose entry is write-protected, relative to the root.
        mode: Its kind and its rights, as stat(2) has them.
        signature: Numbers that change when it does.
        is_settled: Whether a later change must have another signature.
        content: What a file holds, or where a link leads; None where that is too long.
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
        """Returns whether nothing of it that matters differs."""
        if self.is_folder:
            return self.mode == other.mode
        if self.mode != other.mode or self.content != other.content:
            return False
        return self.content is not None or self.signature == other.signature


def scan(root: int, known: Mapping[str, Folder], *, rights: int = 0) -> Scan:
    """Walks through a root.

    Args:
        root: Descriptor of the root.
        known: What the last walk found: it is looked at before all that is new.
        rights: Rights that the owner gets to each directory, as in `open_folder`.
    """
    found = Scan()
    pending: tuple[deque[str], deque[str]] = (deque([""]), deque())
    left = MOST_FOLDERS
    while queue := pending[0] or pending[1]:
        path = queue.popleft()
        folder = _unchanged(root, path, known.get(path))
        if folder is None:
            if left == 0 or path.count("/") >= DEEPEST:
                found.is_complete = False
                continue
            left -= 1
            folder = _read(root, path, rights)
        if folder is None:
            continue
        found.folders[path] = folder
        for name in folder.folders:
            below = f"{path}/{name}" if path else name
            pending[below not in known].append(below)
    return found


@contextlib.contextmanager
def open_folder(root: int, path: str, *, rights: int = 0) -> Iterator[int]:
    """Opens a directory beneath the root; a link at any step is refused.

    Args:
        root: Descriptor of the root.
        path: Relative to it; empty for the root itself.
        rights: Rights that the owner gets to each directory on the way, where they are missing: a
            program that takes them away hides what is in a directory, or keeps it there.

    Raises:
        OSError: It is missing, or no directory.
    """
    fd = os.open(".", _READ_DIRECTORY, dir_fd=root)
    try:
        for part in path.split("/") if path else ():
            grant_owner(fd, part, rights)
            below = os.open(part, _READ_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def grant_owner(directory: int, name: str, rights: int) -> None:
    """Gives the owner of a directory rights that are missing; no link is followed.

    Raises:
        OSError: It is missing, or another user's.
    """
    if not rights:
        return
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode) or status.st_mode & rights == rights:
        return
    mode = stat.S_IMODE(status.st_mode) | rights
    if not hasattr(os, "O_PATH"):  # not Linux
        os.chmod(name, mode, dir_fd=directory, follow_symlinks=False)
        return
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.chmod(f"/proc/self/fd/{fd}", mode)  # noqa: PTH101  # O_PATH: there is no fchmod()
    finally:
        os.close(fd)


def _unchanged(root: int, path: str, known: Folder | None) -> Folder | None:
    if known is None or not known.is_settled:
        return None
    with contextlib.suppress(OSError):
        status = os.stat(path or ".", dir_fd=root, follow_symlinks=False)
        if (identity(status), status.st_ctime_ns) == (known.identity, known.changed):
            return known
    return None


def _read(root: int, path: str, rights: int) -> Folder | None:
    try:
        with open_folder(root, path, rights=rights) as fd:
            status = os.fstat(fd)
            is_settled = time.time_ns() - status.st_ctime_ns > _SETTLED_NS
            with os.scandir(fd) as entries:
                found = list(entries)
    except PermissionError:
        return _unreadable(root, path)
    except OSError:
        return None  # removed, or replaced by a link
    names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
    links = {entry.name for entry in found if entry.is_symlink()}
    above = tuple(map(folded, path.split("/")[-2:]))
    present = {folded(name) for name in names}
    is_git = above[-1] == ".git" or any(marks <= present for marks in _MARKS)
    protected = [
        name
        for name in names
        if _is_protected(above, folded(name), is_git=is_git)
        or (name in links and _is_parent(above, folded(name)))
    ]
    folders = [name for name, is_folder in names.items() if is_folder and name not in protected]
    return Folder(
        identity(status),
        status.st_ctime_ns,
        is_settled,
        tuple(sorted(folders)),
        tuple(sorted(protected)),
        is_git,
    )


def _unreadable(root: int, path: str) -> Folder | None:
    """Returns a directory that cannot be read as empty, until a program changes its rights."""
    with contextlib.suppress(OSError):
        status = os.stat(path or ".", dir_fd=root, follow_symlinks=False)
        return Folder(
            identity=identity(status),
            changed=status.st_ctime_ns,
            is_settled=True,
            folders=(),
            protected=(),
            is_git=False,
        )
    return None


def _is_protected(above: tuple[str, ...], name: str, *, is_git: bool) -> bool:
    if is_git and name in _OF_GIT:
        return True
    return any(above[len(above) - len(rule) :] == rule for rule in _RULES.get(name, ()))


def _is_parent(above: tuple[str, ...], name: str) -> bool:
    place = (*above, name)
    return any(place[start:] in _PARENTS for start in range(len(place)))


def take_snapshot(
    root: int, found: Scan, known: Mapping[str, Entry], *, rights: int = 0
) -> dict[str, Entry]:
    """Reads what the write-protected paths hold.

    Args:
        root: Descriptor of the root.
        found: Where they are.
        known: The last snapshot; what has not changed since is not read again.
        rights: Rights that the owner gets to each directory, as in `open_folder`.

    Returns:
        The entries by their path relative to the root, each directory before what is in it.
    """
    entries: dict[str, Entry] = {}
    for folder, name in found.protected():
        with contextlib.suppress(OSError), open_folder(root, folder) as fd:
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
    """Yields what is at a path and below it, but for regular files whose names end in `without`."""
    path = prefix + name
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if without and name.endswith(without) and stat.S_ISREG(status.st_mode):
            return
        entry = _entry(directory, name, folder, status, known.get(path))
    except OSError:
        return  # removed meanwhile
    yield path, entry
    if entry.is_folder and depth < _DEEPEST_ENTRY:
        with contextlib.suppress(OSError), open_folder(directory, name, rights=rights) as fd:
            for each in sorted(os.listdir(fd)):  # noqa: PTH208  # of a descriptor
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
        fd, _ = open_file(name, directory)
        with os.fdopen(fd, "rb", buffering=0) as file:
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
