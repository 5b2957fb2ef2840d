"""Protects files inside the root from tools.

There are two kinds. The server's own files (settings, data directory) are closed to reads and
writes. Files that programs obey (function files, a repository's hooks, the settings of agents and
shells) are closed to writes. Both are checked on the opened directory, by device and inode and up
to the root, so that no link or alternative spelling can bypass them.
"""

from __future__ import annotations

import errno
import functools
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.sandbox.files.openat import MAX_DEPTH, Root, identity, path_of
from tools.sandbox.files.protected_names import (
    CLOSED_TO_WRITES,
    REPOSITORY_MARKS,
    Name,
    closed_names,
    folded,
)

Identity = tuple[int, int]

_EFFECTIVE = os.access in os.supports_effective_ids


class ProtectedPathError(Exception):
    """The place is protected; the message names the protected path."""


class StrayDirectoryError(Exception):
    """The directory has been moved out of the root."""


@dataclass(frozen=True, slots=True)
class _Own:
    """One of the server's own paths."""

    path: str  # absolute path; its links are followed at each check
    parent: str
    name: str  # its folded name
    parts: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> _Own:
        """Makes the path absolute without resolving links."""
        absolute = Path(os.path.abspath(path))  # noqa: PTH100  # links stay: stat follows them
        name = folded(absolute.name)
        return cls(str(absolute), str(absolute.parent), name, absolute.parts[1:])


@dataclass(slots=True)
class _Judged:
    directory: int
    names: tuple[str, ...]  # the folded names below it
    levels: tuple[Identity, ...]  # that directory and its parents, up to the root
    chain: frozenset[Identity]  # the levels, and the file if it exists

    def exists(self, path: str) -> bool:
        """Returns whether a path from the deepest directory exists, even as a dangling link."""
        if not _access_tells():
            return _is_there(path, self.directory)
        # Most of these do not exist, and an exception costs more.
        return os.access(
            path, os.F_OK, dir_fd=self.directory, effective_ids=_EFFECTIVE, follow_symlinks=False
        )

    def is_at_or_below(self, top: str, parts: Sequence[str]) -> bool:
        """Returns whether it is the target of a path, or inside it.

        `top` is a path from the deepest directory, empty or with a trailing slash.
        """
        for count in range(len(parts) + 1):
            path = top + "/".join(parts[:count]) or "."
            found = _identity_of(path, self.directory)
            if found is None:
                return self._is_awaited_by(path, parts[count:])
            rest = tuple(map(folded, parts[count:]))
            # The rest need not exist yet; folded, because some systems ignore case.
            if found == self.levels[0] and rest and self.names[: len(rest)] == rest:
                return True
        return found in self.chain

    def _is_awaited_by(self, path: str, below: Sequence[str]) -> bool:
        """Returns whether it is the missing target of a dangling link."""
        try:
            os.readlink(path, dir_fd=self.directory)
        except OSError:
            return False
        here = path_of(self.directory)
        target = os.path.realpath(os.path.join(here, path, *below))  # noqa: PTH118  # as Path has it with `..`
        awaited = tuple(map(folded, target.split("/")))
        place = (*map(folded, here.split("/")), *self.names)
        return place[: len(awaited)] == awaited

    def is_in_repository(self, level: int) -> bool:
        """Returns whether one of its directories is a Git repository, or is becoming one."""
        top = "../" * level
        made = self.names[:1] if level == 0 else ()
        return any(
            all(mark in made or self.exists(top + _SPELLED.get(mark, mark)) for mark in marks)
            for marks in REPOSITORY_MARKS
        )


_SPELLED = {"head": "HEAD"}


class Guard:
    """Decides whether an opened directory may be read or written.

    All checks raise ProtectedPathError if the place is protected, StrayDirectoryError if it was
    moved out of the root, and OSError if a parent directory cannot be examined.

    `protected` places are closed to reads and writes; they need not exist.
    """

    def __init__(self, protected: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        self._protected = tuple(map(_Own.of, protected))
        self._read_only = tuple(map(_Own.of, read_only))
        self._closed: dict[str, list[Name]] = defaultdict(list)
        for name in CLOSED_TO_WRITES:
            self._closed[name[0]].append(name)

    def judge_read(
        self, root: Root, directory: int, name: str = "", file: os.stat_result | None = None
    ) -> None:
        """Raises an error if what was opened may not be read.

        `file` is the status of the file `name` in the directory; None if the directory itself is
        read.
        """
        levels = _levels(root, directory)
        opened = file and identity(file)
        called = folded(name)
        for own in self._protected:
            found = _identity_of(own.path)
            if found is not None and (found == opened or found in levels):
                raise ProtectedPathError(own.path)
            # Also by name: the file may have been replaced since it was opened.
            if opened and own.name == called and _identity_of(own.parent) == levels[0]:
                raise ProtectedPathError(own.path)

    def judge_write(
        self, root: Root, directory: int, names: Sequence[str], permitted: Collection[Name] = ()
    ) -> None:
        """Raises an error if a place may not be written.

        `directory` is the deepest that exists; `names` lead from there to the file. `permitted` are
        protected names that this write may use.
        """
        levels = _levels(root, directory)
        # The file may be a hard link to a protected one.
        file = _identity_of(names[0], directory) if len(names) == 1 else None
        chain = frozenset(levels) | ({file} if file else frozenset())
        self.judge_names(names, permitted)
        place = _Judged(directory, tuple(map(folded, names)), levels, chain)
        for level in range(len(levels)):
            self._judge_level(place, level, permitted)
        for own in (*self._protected, *self._read_only):
            if place.is_at_or_below("/", own.parts):
                raise ProtectedPathError(own.path)

    def judge_names(self, names: Sequence[str], permitted: Collection[Name] = ()) -> None:
        """Raises ProtectedPathError if consecutive names are closed to writes."""
        for name in closed_names(names):
            if name not in permitted:
                raise ProtectedPathError("/".join(name))

    def _judge_level(self, place: _Judged, level: int, permitted: Collection[Name]) -> None:
        top = "../" * level
        for first, closed in self._closed.items():
            if not place.exists(top + first):
                continue
            for name in closed:
                if name not in permitted and place.is_at_or_below(top, name):
                    raise ProtectedPathError("/".join(name))
        if place.is_in_repository(level):
            raise ProtectedPathError("the inside of a Git repository")

    def identities(self) -> frozenset[Identity]:
        """Returns the identities of existing places that are closed to reads."""
        return frozenset(filter(None, (_identity_of(own.path) for own in self._protected)))

    def hides(self, status: os.stat_result) -> bool:
        """Returns whether a directory in a listing is closed to reads."""
        return any(identity(status) == _identity_of(own.path) for own in self._protected)


def _levels(root: Root, directory: int) -> tuple[Identity, ...]:
    """Returns the directory and its parents, up to the root."""
    here, top = identity(os.fstat(directory)), identity(os.fstat(root.fd))
    found, way = [here], ""
    while here != top:
        if len(found) > MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        way += "../"
        above = identity(os.stat(way, dir_fd=directory))
        if above == here:
            raise StrayDirectoryError
        here = above
        found.append(here)
    return tuple(found)


def _identity_of(path: str, directory: int | None = None) -> Identity | None:
    """Returns the identity of a path's target, or None if it does not exist."""
    try:
        return identity(os.stat(path, dir_fd=directory))
    except OSError:
        return None


def _is_there(path: str, directory: int) -> bool:
    try:
        os.lstat(path, dir_fd=directory)
    except OSError:
        return False
    return True


@functools.cache
def _access_tells() -> bool:
    """Returns whether faccessat(2) can check a link itself; some C libraries cannot."""
    return os.access("/", os.F_OK, effective_ids=_EFFECTIVE, follow_symlinks=False)
