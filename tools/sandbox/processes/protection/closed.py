"""The places in a root that programs obey, found by a walk that follows no link.

Beside the names of `obeyed.CLOSED_TO_WRITES`, those are the hooks and the settings of every
directory that git takes for a repository; what is in a repository is walked like all else, since a
few names make one of any directory. A directory that has not changed since the last walk is not
read again: it costs one look at its times.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tools.sandbox.files.obeyed import CLOSED_TO_WRITES, REPOSITORY_MARKS, folded
from tools.sandbox.files.openat import identity

__all__ = ["Folder", "Survey", "opened", "survey", "unlock"]

MOST_FOLDERS = 4_000
"""Directories that a walk reads anew, the nearest first."""

DEEPEST = 128
"""Levels of directories that are walked: each is opened from the root down."""

_SETTLED_NS = 2_500_000_000
"""How long a directory must have been unchanged for its times to prove it, in nanoseconds."""

_READ = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC

_RULES = {
    last: [tuple(map(folded, rule[:-1])) for rule in CLOSED_TO_WRITES if folded(rule[-1]) == last]
    for last in {folded(rule[-1]) for rule in CLOSED_TO_WRITES} - {".git"}
}
"""By the last name of each path that is closed to writes: the names before it."""

_ON_THE_WAY = {
    tuple(map(folded, rule[:end])) for rule in CLOSED_TO_WRITES for end in range(1, len(rule))
}
"""The directories that those lie in: a link in the place of one leads to others."""

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
        closed: Names in it that are closed to writes.
        is_git: Whether git takes it for a repository.
    """

    identity: tuple[int, int]
    changed: int
    is_settled: bool
    folders: tuple[str, ...]
    closed: tuple[str, ...]
    is_git: bool


@dataclass(slots=True)
class Survey:
    """What a walk found.

    Attributes:
        folders: The directories by their path relative to the root, which is the empty one.
        is_complete: Whether all directories were read.
    """

    folders: dict[str, Folder] = field(default_factory=dict)
    is_complete: bool = True

    def closed(self) -> Iterator[tuple[str, str]]:
        """Each directory that has something closed to writes, and the name of that in it."""
        for path, folder in self.folders.items():
            for name in folder.closed:
                yield path, name

    def repositories(self) -> Iterator[str]:
        """The `.git` directories."""
        for path, folder in self.folders.items():
            if folder.is_git and path.rpartition("/")[2] == ".git":
                yield path


def survey(root: int, known: Mapping[str, Folder], *, rights: int = 0) -> Survey:
    """Walks through a root.

    Args:
        root: Descriptor of the root.
        known: What the last walk found: it is looked at before all that is new.
        rights: What the owner is given of each directory that is read, as `opened` has it.
    """
    found = Survey()
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
def opened(root: int, path: str, *, rights: int = 0) -> Iterator[int]:
    """Opens a directory beneath the root, refusing a link at every step.

    Args:
        root: Descriptor of the root.
        path: Relative to it; empty for the root itself.
        rights: What the owner is given of each directory on the way, where it is missing: a
            program that takes them away hides what is in a directory, or keeps it there.

    Raises:
        OSError: If it is not there, or no directory.
    """
    fd = os.open(".", _READ, dir_fd=root)
    try:
        for part in path.split("/") if path else ():
            unlock(fd, part, rights)
            below = os.open(part, _READ, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def unlock(directory: int, name: str, rights: int) -> None:
    """Gives the owner of a directory some rights, where they are missing; no link is followed.

    Raises:
        OSError: If it is not there, or somebody else's.
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
        os.chmod(f"/proc/self/fd/{fd}", mode)  # noqa: PTH101  # a descriptor of its place alone
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
        with opened(root, path, rights=rights) as fd:
            status = os.fstat(fd)
            is_settled = time.time_ns() - status.st_ctime_ns > _SETTLED_NS
            with os.scandir(fd) as entries:
                found = list(entries)
    except PermissionError:
        return _closed_to_us(root, path)
    except OSError:
        return None  # Gone, or replaced by a link.
    names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
    links = {entry.name for entry in found if entry.is_symlink()}
    above = tuple(map(folded, path.split("/")[-2:]))
    present = {folded(name) for name in names}
    is_git = above[-1] == ".git" or any(marks <= present for marks in _MARKS)
    closed = [
        name
        for name in names
        if _is_closed(above, folded(name), is_git=is_git)
        or (name in links and _is_on_the_way(above, folded(name)))
    ]
    folders = [name for name, is_folder in names.items() if is_folder and name not in closed]
    return Folder(
        identity(status),
        status.st_ctime_ns,
        is_settled,
        tuple(sorted(folders)),
        tuple(sorted(closed)),
        is_git,
    )


def _closed_to_us(root: int, path: str) -> Folder | None:
    """Looks empty, until a program changes its rights."""
    with contextlib.suppress(OSError):
        status = os.stat(path or ".", dir_fd=root, follow_symlinks=False)
        return Folder(identity(status), status.st_ctime_ns, True, (), (), is_git=False)  # noqa: FBT003  # a field of the row
    return None


def _is_closed(above: tuple[str, ...], name: str, *, is_git: bool) -> bool:
    if is_git and name in _OF_GIT:
        return True
    return any(above[len(above) - len(rule) :] == rule for rule in _RULES.get(name, ()))


def _is_on_the_way(above: tuple[str, ...], name: str) -> bool:
    place = (*above, name)
    return any(place[start:] in _ON_THE_WAY for start in range(len(place)))
