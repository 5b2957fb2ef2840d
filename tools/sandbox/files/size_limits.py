"""Measures the files at a path, up to a limit."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tools.core.errors import InvalidArgumentsError, ToolError
from tools.sandbox.files.sandbox import Sandbox

GLOB = re.compile(r"[*?\[]")
LOOKED_AT = 1_000  # limit on the entries examined
DEEPEST = 100
REPOSITORY = frozenset({"HEAD", "objects", "refs"})
"""Entries found in the directory of a git repository."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The amount of files at a path."""

    files: int
    has_repository: bool = False
    is_more: bool = False  # whether the limit was reached

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            self.files + other.files,
            self.has_repository or other.has_repository,
            self.is_more or other.is_more,
        )


NOTHING = Extent(0)


def extent_at(sandbox: Sandbox, path: str, *, is_glob: bool, is_recursive: bool) -> Extent:
    """Measures a path, or all paths that match a glob; files outside the root do not count.

    A parent of the root counts as the root.
    """
    place = os.path.normpath(sandbox.root / path)
    if not is_glob:
        return _below(sandbox, place)
    directory, pattern = os.path.split(place)
    if GLOB.search(os.path.relpath(directory, sandbox.root)):
        return Extent(0, is_more=True)
    try:
        listing = sandbox.list_directory(directory, limit=LOOKED_AT)
    except ToolError:  # it does not exist, or leads out
        return NOTHING
    found = Extent(0, is_more=listing.truncated)
    for entry in listing.entries:
        name = entry.path.rpartition("/")[2]
        if fnmatchcase(name, pattern) and name.startswith(".") <= pattern.startswith("."):
            if entry.type != "directory":
                found += Extent(1)
            elif is_recursive and found.files < LOOKED_AT:
                found += _below(sandbox, entry.path)
    return found


def _below(sandbox: Sandbox, place: str) -> Extent:
    if sandbox.root.is_relative_to(place):
        place = "."
    try:
        listing = sandbox.list_directory(place, depth=DEEPEST, limit=LOOKED_AT)
    except InvalidArgumentsError:  # not a directory
        return Extent(1)
    except ToolError:
        return NOTHING
    names: defaultdict[str, set[str]] = defaultdict(set)
    for entry in listing.entries:
        folder, _, name = entry.path.rpartition("/")
        names[folder].add(name)
    return Extent(
        files=sum(entry.type != "directory" for entry in listing.entries),
        has_repository=any(".git" in each or each >= REPOSITORY for each in names.values()),
        is_more=listing.truncated,
    )
