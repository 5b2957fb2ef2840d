"""Walks a root to find its write-protected paths, which other programs obey, and remembers them.

The walk follows no links. Apart from the names in `protect.CLOSED_TO_WRITES`, it protects
hooks and settings of every directory that git recognizes as a repository. It also walks inside
repositories, since a few names turn any directory into one. A directory unchanged since the last
walk is not read again, which costs one stat. The walk lists everything it skips, or a flood of
directories could hide the contents of the last one.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tools.sandbox.files.openat import Descent, identity, open_file, open_name
from tools.sandbox.files.protect import CLOSED_TO_WRITES, REPOSITORY_MARKS, folded
from tools.sandbox.processes.scratch import change_mode

MOST_NEW_FOLDERS = 200_000
"""Limit on new directories examined after a program; a large `npm install` creates 10,000."""

MOST_BYTES = 262_144  # limit on the files whose content is remembered
MOST_REMEMBERED = 67_108_864  # limit on the content remembered for one root
DEEPEST = 128  # limit on the depth of directories, each of which is held open
_SETTLED_NS = 2_500_000_000
"""Minimum age of a directory, in nanoseconds, before its timestamps prove it is unchanged."""

READABLE = stat.S_IRUSR | stat.S_IXUSR  # permissions that a directory's owner needs to examine it

_RULES = {
    last: [tuple(map(folded, rule[:-1])) for rule in CLOSED_TO_WRITES if folded(rule[-1]) == last]
    for last in {folded(rule[-1]) for rule in CLOSED_TO_WRITES} - {".git"}
}
"""The names that precede the last one of each write-protected path, by last name."""

_PARENTS = {
    tuple(map(folded, rule[:end])) for rule in CLOSED_TO_WRITES for end in range(1, len(rule))
}
"""The parent directories of those: a link in place of one would lead to other files."""

_MARKS = (*REPOSITORY_MARKS, frozenset({"objects", "refs"}))
"""Also matches a directory that the `commondir` of a repository leads to."""

_PACKAGES = frozenset({"node_modules", "site-packages"})
"""Directories of third-party packages, which the project runs anyway. Users do not open them as
projects; many contain their authors' editor settings. Repositories in them are still protected."""

_OF_GIT = frozenset({"config", "config.worktree", "hooks"})


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory as read."""

    identity: tuple[int, int]
    changed: int  # time of its last change, nanoseconds
    is_settled: bool  # whether a later change will have a different time
    folders: tuple[str, ...]
    protected: tuple[str, ...]
    is_git: bool


@dataclass(slots=True)
class Scan:
    """The result of a walk."""

    # The directories, by path relative to the root; empty for the root itself.
    folders: dict[str, Folder] = field(default_factory=dict)
    # Directories that were not examined: too deep, or too many.
    unread: list[str] = field(default_factory=list)

    def protected(self) -> Iterator[tuple[str, str]]:
        """Yields the directory and name of each write-protected path."""
        for path, folder in self.folders.items():
            for name in folder.protected:
                yield path, name

    def repositories(self) -> Iterator[str]:
        """Yields the `.git` directories."""
        for path, folder in self.folders.items():
            if folder.is_git and path.rpartition("/")[2] == ".git":
                yield path


def scan(root: int, known: Mapping[str, Folder], *, is_after: bool = False) -> Scan:
    """Walks a root.

    `is_after`: whether programs have run since. Unknown directories are then theirs: a limited
    number is examined, and permissions that hide something are restored.
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
    """Opens a directory inside the root; refuses links at every step.

    `path`: relative to it; empty for the root itself.
    `rights`: owner permissions to restore on each directory on the way: a program may have removed
    them to hide the contents, or to keep them in place.
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
    """Gives the owner missing permissions on a directory, without following links."""
    if not rights:
        return
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode) or status.st_mode & rights == rights:
        return
    change_mode(name, stat.S_IMODE(status.st_mode) | rights, directory=directory)


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
        settled and not to_packages,  # the targets of links may change
        tuple(sorted(folders)),
        tuple(sorted(protected)),
        is_git,
    )


def _leads_to_packages(directory: int, name: str) -> bool:
    """Returns whether a link leads into packages, whose settings are not protected.

    Through the link they would belong to a directory of the project.
    """
    with contextlib.suppress(OSError):
        return not _PACKAGES.isdisjoint(os.readlink(name, dir_fd=directory).split("/"))
    return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Returns whether an entry is a regular file or leads to one; False for link loops."""
    with contextlib.suppress(OSError):
        return entry.is_file()
    return False


def _unread(root: int, path: str) -> Folder | None:
    """Returns another user's directory as if empty, until a program changes it."""
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
    """Returns the index of the first write-protected name of a path, if any."""
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
    """Returns whether any change from now on must change these times."""
    return time.time_ns() - status.st_ctime_ns > _SETTLED_NS


@dataclass(frozen=True, slots=True)
class Entry:
    """A write-protected file, directory or link."""

    folder: str  # the directory with the write-protected entry, relative to the root
    mode: int
    signature: tuple[int, ...]  # changes with the file
    is_settled: bool
    content: bytes | None  # the content of a file, or the target of a link; None if too long

    @property
    def is_folder(self) -> bool:
        """True for a directory."""
        return stat.S_ISDIR(self.mode)

    def same_as(self, other: Entry) -> bool:
        """Returns whether nothing relevant differs."""
        if self.is_folder:
            return self.mode == other.mode
        if self.mode != other.mode or self.content != other.content:
            return False
        return self.content is not None or self.signature == other.signature


def take_snapshot(
    root: int, found: Scan, known: Mapping[str, Entry], *, is_after: bool = False
) -> dict[str, Entry]:
    """Reads the write-protected paths.

    `is_after`: whether programs have run since, as in `scan`. New directories are then listed
    without their contents, except for hooks, which git creates.

    Returns:
        The entries by path relative to the root; directories come before their contents.
    """
    reading = _Snapshot(known, is_after=is_after)
    for folder, name in found.protected():
        with contextlib.suppress(OSError), open_folder(root, folder) as fd:
            is_hooks = name == "hooks" and found.folders[folder].is_git
            reading.add(fd, folder, f"{folder}/" if folder else "", name, is_hooks=is_hooks)
    return reading.entries


def accepted(root: int, path: str, content: bytes, known: Mapping[str, Entry]) -> dict[str, Entry]:
    """Returns the entries of a file written with approval, and of directories created for it.

    `content`: the written content; a program may have changed it since.
    """
    parts = path.split("/")
    top = outermost_protected(parts)
    entries: dict[str, Entry] = {}
    if top is None:
        return entries
    for count in range(top + 1, len(parts) + 1):
        each, is_file = "/".join(parts[:count]), count == len(parts)
        if not is_file and each in known:
            continue
        with open_folder(root, "/".join(parts[: count - 1])) as fd:
            status = os.stat(parts[count - 1], dir_fd=fd, follow_symlinks=False)
        entries[each] = Entry(
            folder="/".join(parts[:top]),
            mode=status.st_mode,
            signature=_signature(status),
            is_settled=False,
            content=content if is_file else b"",
        )
    return entries


class _Snapshot:
    def __init__(self, known: Mapping[str, Entry], *, is_after: bool) -> None:
        self.entries: dict[str, Entry] = {}
        self._known = known
        self._is_after = is_after
        self._left = MOST_REMEMBERED

    def add(
        self, directory: int, folder: str, prefix: str, name: str, *, is_hooks: bool, depth: int = 0
    ) -> None:
        """Adds a path and everything below it; skips git's sample hooks, which are never run."""
        path = prefix + name
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if is_hooks and name.endswith(".sample") and stat.S_ISREG(status.st_mode):
                return
            self.entries[path] = entry = self._entry(directory, name, folder, path, status)
        except OSError:
            return  # removed meanwhile
        is_new = self._is_after and path not in self._known
        if not entry.is_folder or depth >= DEEPEST or (is_new and not is_hooks):
            return
        rights = READABLE if self._is_after else 0
        with contextlib.suppress(OSError), open_folder(directory, name, rights=rights) as fd:
            for each in sorted(os.listdir(fd)):  # noqa: PTH208  # on a descriptor
                self.add(fd, folder, f"{path}/", each, is_hooks=is_hooks, depth=depth + 1)

    def _entry(
        self, directory: int, name: str, folder: str, path: str, status: os.stat_result
    ) -> Entry:
        known = self._known.get(path)
        signature = _signature(status)
        if known is not None and known.is_settled and known.signature == signature:
            entry = known
        else:
            content: bytes | None = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.fsencode(os.readlink(name, dir_fd=directory))
            elif stat.S_ISREG(status.st_mode):
                # Remembered content is always compared, however much else there is now.
                is_read = self._left > 0 if known is None else known.content is not None
                content = _content(directory, name) if is_read else None
            entry = Entry(folder, status.st_mode, signature, is_settled(status), content)
        self._left -= len(entry.content or b"")
        return entry


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
