"""Finds the directories of a place that have a SKILL.md."""

from __future__ import annotations

import heapq
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.agent.skillfiles.places import SkillPlace
from tools.agent.skillfiles.skill import MAIN
from tools.core.errors import ToolError
from tools.sandbox.files.open_nofollow import open_below

MOST_LEVELS = 3
"""Limit on the depth of directories that only group skills."""

MOST_DIRECTORIES = 1_000
"""Limit on the directories of a place, and on the names in each."""

_SYSTEM = ".system"
"""Codex's directory for its bundled skills; no other hidden directory has any."""


class Sighting(NamedTuple):
    """A SKILL.md that was found but not opened."""

    directory: Path
    # Device, inode, size and times, which change with the file. None if it was not examined,
    # because there are too many directories before it.
    signature: tuple[int, ...] | None


def sightings(place: SkillPlace) -> Iterator[Sighting]:
    """Yields every skill of a place, by name; none if the place is missing or cannot be opened.

    Everything in a skill's directory belongs to the skill. A link may lead to a skill, but not to a
    directory of several skills.
    """
    try:
        top = place.sandbox.open_directory(str(place.path))
    except ToolError:
        return
    try:
        yield from _below(top, place.path)
    except OSError:  # it disappeared, or cannot be listed
        return
    finally:
        os.close(top)


def _below(top: int, path: Path) -> Iterator[Sighting]:
    waiting: deque[tuple[str, ...]] = deque([()])
    looked = 0
    while waiting and looked < MOST_DIRECTORIES:
        parts = waiting.popleft()
        looked += 1
        if (found := _signature(top, parts)) is not None:
            yield Sighting(path.joinpath(*parts), found)
        elif len(parts) < MOST_LEVELS:
            waiting.extend((*parts, name) for name in _names(top, parts))
    if waiting:
        yield Sighting(path.joinpath(*waiting[0]), None)


def _signature(top: int, parts: tuple[str, ...]) -> tuple[int, ...] | None:
    try:
        found = os.stat("/".join((*parts, MAIN)), dir_fd=top)
    except OSError:
        return None
    return signature_of(found)


def signature_of(status: os.stat_result) -> tuple[int, ...]:
    """Returns the state of a file; the last number is its change time in nanoseconds."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _names(top: int, parts: tuple[str, ...]) -> list[str]:
    """Returns the names in a directory that may be skills, or contain some."""
    try:
        fd = open_below(top, parts)
    except OSError:  # a link, not a directory, or not readable
        return []
    try:
        with os.scandir(fd) as entries:
            names = (each.name for each in entries if _may_hold(each))
            return heapq.nsmallest(MOST_DIRECTORIES, names)
    finally:
        os.close(fd)


def _may_hold(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") and entry.name != _SYSTEM:
        return False
    return entry.is_symlink() or entry.is_dir(follow_symlinks=False)
