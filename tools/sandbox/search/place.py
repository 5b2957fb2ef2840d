"""Which files a search is about, and where: directories that the sandbox opened, for the worker."""

from __future__ import annotations

import os
from dataclasses import dataclass
from posixpath import basename, dirname

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.files.openat import Root, path_beneath
from tools.sandbox.files.sandbox import Sandbox

__all__ = ["Scope", "SearchPlace", "open_place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which files are searched.

    Attributes:
        path: A directory, or one file, relative to the root.
        names: Pattern of their paths, relative to that directory; empty for all.
        include_ignored: Whether those that git leaves out are searched too.
    """

    path: str = "."
    names: str = ""
    include_ignored: bool = False


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """What is searched.

    Attributes:
        sandbox: Whose files they are.
        asked: The path as the caller gave it.
        fds: Descriptors of the root and of the directory, or of the one file alone.
        prefix: The directory, relative to the root and without links; "." for the root.
        name: The one file's name; empty for a directory.
    """

    sandbox: Sandbox
    asked: str
    fds: tuple[int, ...]
    prefix: str
    name: str = ""

    def beneath_root(self, path: str) -> str:
        """A path beneath the place as one beneath the root."""
        return path if self.prefix == "." else f"{self.prefix}/{path}"

    def shown(self, paths: set[str]) -> set[str]:
        """Those of some paths beneath the place that neither protection nor rules hide; blocks."""
        return {path for path in paths if not self.sandbox.hides(self.beneath_root(path))}

    def close(self) -> None:
        """Closes what is open."""
        for fd in self.fds:
            os.close(fd)


def open_place(sandbox: Sandbox, path: str) -> SearchPlace:
    """Opens a directory or a file to be searched.

    Raises:
        ToolError: As the methods of Sandbox.
    """
    fds = [sandbox.open_directory()]
    try:
        try:
            fds.append(sandbox.open_directory(path))
        except InvalidArgumentsError:  # no directory
            return _open_one(sandbox, path)
        prefix = _prefix(sandbox, path, *fds)
        return SearchPlace(sandbox, path, (fds.pop(0), fds.pop()), prefix)
    finally:
        for fd in fds:
            os.close(fd)


def _open_one(sandbox: Sandbox, path: str) -> SearchPlace:
    with sandbox.open_read(path) as file:
        spelled = sandbox.relative(path)
        fds = (os.dup(file.fileno()),)
    return SearchPlace(sandbox, path, fds, dirname(spelled) or ".", basename(spelled))


def _prefix(sandbox: Sandbox, path: str, root: int, start: int) -> str:
    try:
        return path_beneath(Root(root, ()), start)
    except OSError:
        return sandbox.relative(path)  # where the system does not tell
