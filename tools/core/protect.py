"""What may not be touched even inside the root.

Two kinds: the program's own files (settings, data directory), closed to reads and writes; and
files that programs obey (function files, a repository's hooks, the settings of agents and shells),
closed to writes. Both are judged on the directory that was opened, by device and inode and up to
the root, so that no link and no other spelling of a name gets around them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.core.openat import OPEN_DIRECTORY, Root, identity

__all__ = ["CLOSED_TO_WRITES", "Guard", "ProtectedPathError", "StrayDirectoryError"]

Identity = tuple[int, int]

CLOSED_TO_WRITES: tuple[tuple[str, ...], ...] = (
    (".git",),
    (".gitconfig",),
    (".gitmodules",),
    (".mcp.json",),
    (".claude",),
    (".claude.json",),
    (".codex",),
    (".gemini",),
    (".cursor", "mcp.json"),
    (".cursor", "hooks.json"),
    (".vscode", "mcp.json"),
    (".vscode", "settings.json"),
    (".vscode", "tasks.json"),
    (".windsurf",),
    (".ssh",),
    (".bashrc",),
    (".bash_login",),
    (".bash_profile",),
    (".profile",),
    (".zshrc",),
    (".zshenv",),
    (".zprofile",),
    (".zlogin",),
)
"""Paths, in any directory of the root, whose content makes other programs run or trust things."""


class ProtectedPathError(Exception):
    """The place is protected; the message names what protects it."""


class StrayDirectoryError(Exception):
    """The directory is no longer beneath the root."""


@dataclass(slots=True)
class _Judged:
    """A place that is judged.

    Attributes:
        bottom: The deepest directory that exists.
        names: What follows below it, case folded.
        chain: The directories from there up as far as looked at, and the file if it exists.
    """

    bottom: Identity
    names: tuple[str, ...]
    chain: set[Identity]

    def is_at_or_below(self, top: int, parts: Sequence[str]) -> bool:
        """Whether it is what a path from an open directory leads to, or is inside of that."""
        for count in range(len(parts) + 1):
            found = _identity_of("/".join(parts[:count]) or ".", top)
            if found is None:
                return False
            rest = tuple(part.casefold() for part in parts[count:])
            # The rest are names that need not exist yet; folded, because some systems ignore case.
            if found == self.bottom and rest and self.names[: len(rest)] == rest:
                return True
        return found in self.chain

    def has_names(self, parts: Sequence[str]) -> bool:
        """Whether it has these names, one after another, below the deepest directory."""
        folded = tuple(part.casefold() for part in parts)
        starts = range(len(self.names) - len(folded) + 1)
        return any(self.names[start : start + len(folded)] == folded for start in starts)


class Guard:
    """Judges whether an opened directory is a place to read from or write to.

    Args:
        protected: Files and directories closed to reads and writes; they need not exist.
        read_only: Files and directories closed to writes.
        closed_to_writes: Names closed to writes in every directory.
    """

    def __init__(
        self,
        protected: Iterable[Path],
        read_only: Iterable[Path] = (),
        closed_to_writes: Sequence[tuple[str, ...]] = CLOSED_TO_WRITES,
    ) -> None:
        self._protected = _absolute(protected)
        self._read_only = _absolute(read_only)
        self._closed = tuple(closed_to_writes)

    def judge(self, root: Root, directory: int, names: Sequence[str], *, writing: bool) -> None:
        """Raises if a place may not be used.

        Args:
            root: The root that the directory has to be in.
            directory: Descriptor of the deepest directory that exists.
            names: What follows below it, the file's own name last; empty for the directory itself.
            writing: Whether the place is to be written.

        Raises:
            ProtectedPathError: If it is protected.
            StrayDirectoryError: If the directory was moved out of the root.
            OSError: If a directory on the way up cannot be opened.
        """
        bottom = identity(os.fstat(directory))
        place = _Judged(bottom, tuple(name.casefold() for name in names), {bottom})
        if len(names) == 1 and (file := _identity_of(names[0], directory)):
            place.chain.add(file)  # It may be another name of a protected one.
        for ancestor in _ancestors(root, directory):
            place.chain.add(identity(os.fstat(ancestor)))
            for rule in self._closed if writing else ():
                if place.is_at_or_below(ancestor, rule) or place.has_names(rule):
                    raise ProtectedPathError("/".join(rule))
        for path in (*self._protected, *(self._read_only if writing else ())):
            with _opened(path.anchor) as top:
                if place.is_at_or_below(top, path.parts[1:]):
                    raise ProtectedPathError(str(path))

    def hides(self, status: os.stat_result) -> bool:
        """Whether a directory met while listing is closed to reads."""
        return any(identity(status) == _identity_of(path) for path in self._protected)


def _ancestors(root: Root, directory: int) -> Iterator[int]:
    """The directory and those above it, up to the root."""
    home = identity(os.fstat(root.fd))
    current = os.dup(directory)
    try:
        while True:
            here = identity(os.fstat(current))
            yield current
            if here == home:
                return
            above = os.open("..", OPEN_DIRECTORY, dir_fd=current)
            os.close(current)
            current = above
            if identity(os.fstat(current)) == here:
                raise StrayDirectoryError
    finally:
        os.close(current)


def _absolute(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(Path(os.path.abspath(path)) for path in paths)  # noqa: PTH100  # links stay: stat follows them


def _identity_of(path: str | Path, directory: int | None = None) -> Identity | None:
    """The identity of what a path leads to, or None if that does not exist."""
    try:
        return identity(os.stat(path, dir_fd=directory))
    except OSError:
        return None


@contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, OPEN_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)
