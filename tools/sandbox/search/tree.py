"""Walks the files inside an open directory, in order, skipping excluded ones."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tools.sandbox.files.openat import Descent, open_below
from tools.sandbox.search.gitignore import IgnoreRules

MAX_FILES = 500_000  # limit on the files of a search
MAX_PATH_BYTES = 4096  # limit on paths that other tools can open, like PATH_MAX in Linux
VERSION_CONTROL = frozenset({".git", ".hg", ".jj", ".svn"})
"""Directories of version control, which searches skip."""

Identity = tuple[int, int]


class File(NamedTuple):
    """A file, or a link, which is listed but not followed."""

    path: str  # relative to the start of the search
    is_link: bool
    size: int = 0  # size in bytes; 0 unless requested
    mtime: float = 0.0  # time of the last change, Unix seconds; 0 unless requested


@dataclass(slots=True)
class Tree:
    """The result of a walk."""

    files: list[File] = field(default_factory=list)  # sorted by path components
    unreadable: list[str] = field(default_factory=list)  # paths that cannot be opened
    truncated: bool = False


class _Open(NamedTuple):
    """A directory being walked: its path with a slash, remaining entries and rules."""

    prefix: str
    entries: Iterator[os.DirEntry[str]]
    ignored: IgnoreRules


class Walk:
    """Walks the inside of an open directory, on descriptors and without following links.

    Args:
        root: Descriptor of the root; rule files below it apply.
        prefix: Its path relative to the root and without links; "." for the root.
        detailed: Whether to report sizes and times, which costs a stat per file.
    """

    def __init__(
        self,
        root: int,
        start: int,
        prefix: str,
        *,
        closed: Collection[Identity] = (),
        include_ignored: bool = False,
        detailed: bool = True,
    ) -> None:
        self._root = root
        self._start = start
        self._prefix = "" if prefix == "." else f"{prefix}/"
        self._closed = frozenset(closed)
        self._closed_inodes = {inode for _, inode in closed}
        self._include_ignored = include_ignored
        self._detailed = detailed

    def run(self) -> Tree:
        """Runs the walk."""
        tree = Tree()
        with Descent(self._start) as descent:
            stack = [self._enter(descent, "", self._above())]
            while stack:
                here = stack[-1]
                for entry in here.entries:
                    path = here.prefix + entry.name
                    is_directory = entry.is_dir(follow_symlinks=False)
                    if entry.name in VERSION_CONTROL or here.ignored.match(
                        self._prefix + path, is_directory=is_directory
                    ):
                        continue
                    if not is_directory:
                        self._add(entry, path, tree)
                        continue
                    try:
                        stack.append(self._enter(descent, path, here.ignored))
                    except FileNotFoundError:
                        continue
                    except OSError:
                        tree.unreadable.append(path)
                        continue
                    break
                else:
                    stack.pop()
                if len(tree.files) >= MAX_FILES:
                    tree.truncated = True
                    break
        return tree

    def _above(self) -> IgnoreRules:
        """Reads the rules of the directories above the one to search."""
        ignored = IgnoreRules()
        if self._include_ignored or not self._prefix:
            return ignored
        fd, prefix = os.dup(self._root), ""
        try:
            for part in self._prefix.removesuffix("/").split("/"):
                names = [name for name in (".git", ".gitignore") if _exists(name, fd)]
                ignored = ignored.below(fd, prefix, names)
                below = open_below(fd, [part])
                os.close(fd)
                fd, prefix = below, f"{prefix}{part}/"
        except OSError:
            return ignored  # it was moved meanwhile, so rules of its former place do not apply
        finally:
            os.close(fd)
        return ignored

    def _enter(self, descent: Descent, path: str, above: IgnoreRules) -> _Open:
        """Opens a directory, which stays open while what is inside it is walked."""
        if len(os.fsencode(self._prefix + path)) >= MAX_PATH_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        fd = descent.open(path)
        if _identity(os.fstat(fd)) in self._closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with os.scandir(fd) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        prefix = f"{path}/" if path else ""
        ignored = above
        if not self._include_ignored:
            ignored = above.below(fd, self._prefix + prefix, {entry.name for entry in entries})
        return _Open(prefix, iter(entries), ignored)

    def _add(self, entry: os.DirEntry[str], path: str, tree: Tree) -> None:
        is_link = entry.is_symlink()
        if not (is_link or entry.is_file(follow_symlinks=False)):
            return
        if not self._detailed and entry.inode() not in self._closed_inodes:
            tree.files.append(File(path, is_link))
            return
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # removed meanwhile
            return
        if _identity(status) not in self._closed:
            tree.files.append(File(path, is_link, status.st_size, status.st_mtime))


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True
