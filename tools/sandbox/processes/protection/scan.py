"""A walk through a root: where its write-protected paths are, which other programs obey.

It follows no link. Beside the names of `protected_names.CLOSED_TO_WRITES`, such paths are the hooks
and the settings of every directory that git takes for a repository; what is in a repository is
walked like all else, since a few names make one of any directory. A directory that has not changed
since the last walk is not read again: that costs one look at its times. A walk leaves out nothing
without naming it, or a flood of directories would hide what lies in the last.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tools.sandbox.files.nofollow import Descent, open_name
from tools.sandbox.files.openat import identity
from tools.sandbox.files.protected_names import CLOSED_TO_WRITES, REPOSITORY_MARKS, folded

MOST_NEW_FOLDERS = 200_000
"""New directories that are looked at after a program; a large `npm install` makes 10,000."""

DEEPEST = 128
"""Levels of directories that are walked, each of which is held open."""
_SETTLED_NS = 2_500_000_000
"""How long a directory must have been unchanged for its times to prove it, in nanoseconds."""

READABLE = stat.S_IRUSR | stat.S_IXUSR
"""Rights that a directory's owner needs to look at it."""

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

_PACKAGES = frozenset({"node_modules", "site-packages"})
"""Directories of others' packages, which the project runs anyway. Nobody opens one as a project;
many hold settings of their authors' editors. Repositories in them are protected all the same."""

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
        unread: The directories that were not looked at: too deep, or too many.
    """

    folders: dict[str, Folder] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

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


def scan(root: int, known: Mapping[str, Folder], *, is_after: bool = False) -> Scan:
    """Walks through a root.

    Args:
        root: Descriptor of the root.
        known: What the last walk found.
        is_after: Whether programs have run since. What is not known is their work then: a bounded
            number of it is looked at, and rights that hide something are given back.
    """
    found = Scan()
    left = MOST_NEW_FOLDERS
    pending = [""]
    opens = partial(_open_below, rights=READABLE if is_after else 0)
    with Descent(root, opens) as descent:
        while pending:
            path = pending.pop()
            folder = _unchanged(root, path, known.get(path))
            if folder is None:
                is_too_deep = path.count("/") >= DEEPEST
                is_new = path not in known
                left -= is_new
                if is_after and (is_too_deep or (is_new and left < 0)):
                    found.unread.append(path)
                    continue
                folder = _unread(root, path) if is_too_deep else _read(root, path, descent)
            if folder is not None:
                found.folders[path] = folder
                pending += [f"{path}/{name}" if path else name for name in folder.folders]
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
    fd = _open_below(root, ".", 0)
    try:
        for part in path.split("/") if path else ():
            below = _open_below(fd, part, rights)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _open_below(directory: int, name: str, rights: int) -> int:
    grant_owner(directory, name, rights)
    return open_name(directory, name)


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


def _read(root: int, path: str, descent: Descent) -> Folder | None:
    try:
        fd = descent.open(path)
        status = os.fstat(fd)
        settled = is_settled(status)
        with os.scandir(fd) as entries:
            found = list(entries)
    except PermissionError:
        return _unread(root, path)
    except OSError:
        return None  # removed, or replaced by a link
    names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
    links = {entry.name: entry for entry in found if entry.is_symlink()}
    above = tuple(map(folded, path.split("/")[-2:]))
    present = {folded(name) for name in names}
    holds_packages = not _PACKAGES.isdisjoint(path.split("/"))
    to_packages = (
        set() if holds_packages else {each for each in links if _leads_to_packages(fd, each)}
    )
    is_git = above[-1] == ".git" or any(marks <= present for marks in _MARKS)
    protected = [
        name
        for name in names
        if (is_git and folded(name) in _OF_GIT)
        or (not holds_packages and _is_protected(above, folded(name), is_link=name in links))
        or (name in to_packages and not _is_file(links[name]))
    ]
    folders = [name for name, is_folder in names.items() if is_folder and name not in protected]
    return Folder(
        identity(status),
        status.st_ctime_ns,
        settled and not to_packages,  # what they lead to may change
        tuple(sorted(folders)),
        tuple(sorted(protected)),
        is_git,
    )


def _leads_to_packages(directory: int, name: str) -> bool:
    """Returns whether a link leads into packages, whose settings are not protected.

    By such a link they would be those of a directory of the project.
    """
    with contextlib.suppress(OSError):
        return not _PACKAGES.isdisjoint(os.readlink(name, dir_fd=directory).split("/"))
    return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Returns whether an entry is, or leads to, a regular file; not for links in a circle."""
    with contextlib.suppress(OSError):
        return entry.is_file()
    return False


def _unread(root: int, path: str) -> Folder | None:
    """Returns a directory of others' as if it were empty, until a program changes it."""
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


def _is_protected(above: tuple[str, ...], name: str, *, is_link: bool) -> bool:
    if any(above[len(above) - len(rule) :] == rule for rule in _RULES.get(name, ())):
        return True
    place = (*above, name)
    return is_link and any(place[start:] in _PARENTS for start in range(len(place)))


def outermost_protected(names: Sequence[str]) -> int | None:
    """Returns which of the names of a path is the first that is write-protected, if any is."""
    if not _PACKAGES.isdisjoint(names):
        return None
    given = tuple(map(folded, names))
    found = (
        at
        for at, name in enumerate(given)
        if _is_protected(given[max(0, at - 2) : at], name, is_link=False)
    )
    return next(found, None)


def is_settled(status: os.stat_result) -> bool:
    """Returns whether a change from now on must change these times."""
    return time.time_ns() - status.st_ctime_ns > _SETTLED_NS
