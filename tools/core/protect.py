"""What may not be touched even inside the root.

Two kinds: the program's own files (settings, data directory), closed to reads and writes; and
files that other programs obey (a repository's hooks, the settings of agents and shells), closed to
writes. Both are judged on the directory that was opened, by device and inode and up to the root, so
that no link and no other spelling of a name gets around them.
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


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A directory that exists, and the names below it that lead to what is protected."""

    directory: Identity
    names: tuple[str, ...]
    reason: str


class Guard:
    """Judges whether an opened directory is a place to read from or write to.

    Args:
        protected: Files and directories closed to reads and writes; they need not exist.
        closed_to_writes: Names closed to writes in every directory.
    """

    def __init__(
        self,
        protected: Iterable[Path],
        closed_to_writes: Sequence[tuple[str, ...]] = CLOSED_TO_WRITES,
    ) -> None:
        self._protected = tuple(Path(os.path.abspath(path)) for path in protected)  # noqa: PTH100  # links stay: stat follows them
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
        below = {bottom}
        if (
            len(names) == 1
        ):  # The file itself may exist, perhaps as another name of a protected one.
            below.update(_identities(directory, names[0]))
        folded = tuple(name.casefold() for name in names)
        for ancestor in _ancestors(root, directory):
            below.add(identity(os.fstat(ancestor)))
            if writing:
                for rule in self._closed:
                    _refuse(_anchors(ancestor, rule), below, bottom, folded)
        for path in self._protected:
            with _opened(path.anchor) as top:
                _refuse(_anchors(top, path.parts[1:]), below, bottom, folded)

    def hides(self, status: os.stat_result) -> bool:
        """Whether a directory met while listing is closed to reads."""
        return any(identity(status) in _identities(None, path) for path in self._protected)


def _refuse(
    anchors: Iterable[_Anchor], below: set[Identity], bottom: Identity, folded: tuple[str, ...]
) -> None:
    for anchor in anchors:
        if not anchor.names:
            hit = anchor.directory in below
        else:
            # A name that need not exist yet; systems that ignore case would find it by either.
            names = tuple(name.casefold() for name in anchor.names)
            hit = anchor.directory == bottom and folded[: len(names)] == names
        if hit:
            raise ProtectedPathError(anchor.reason)


def _anchors(top: int, parts: tuple[str, ...]) -> Iterator[_Anchor]:
    """What exists on the way to a protected path, each with the names that remain from there."""
    for count in range(len(parts) + 1):
        for found in _identities(top, "/".join(parts[:count]) or "."):
            yield _Anchor(found, parts[count:], "/".join(parts))


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


def _identities(directory: int | None, path: str | Path) -> tuple[Identity, ...]:
    """The identity of what a name leads to, if it exists."""
    try:
        return (identity(os.stat(path, dir_fd=directory)),)
    except OSError:
        return ()


@contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, OPEN_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)
