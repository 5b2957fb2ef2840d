"""Where skills are in a place: which of its directories have a SKILL.md."""

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
from tools.sandbox.files.nofollow import open_below

MOST_LEVELS = 3
"""Directories that only sort skills, one in another."""

MOST_DIRECTORIES = 1_000
"""Directories of a place that are looked into, and names in each."""

_SYSTEM = ".system"
"""Where Codex keeps the skills that it comes with; no other hidden directory has any."""


class Sighting(NamedTuple):
    """A SKILL.md that was seen, and not opened.

    Attributes:
        directory: The directory that it is in.
        signature: Device, inode, size and times: another is another file, or another text. None
            where nothing was looked at any more: there are too many directories before it.
    """

    directory: Path
    signature: tuple[int, ...] | None


def sightings(place: SkillPlace) -> Iterator[Sighting]:
    """Every skill of a place, by name; none where the place is not there or not to be opened.

    What is in the directory of a skill belongs to it. A link may lead to a skill, and to no
    directory of several.
    """
    try:
        top = place.sandbox.open_directory(str(place.path))
    except ToolError:
        return
    try:
        yield from _below(top, place.path)
    except OSError:  # it went away, or nobody may list it
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
    """Tells one state of a SKILL.md from another, where there is one."""
    try:
        found = os.stat("/".join((*parts, MAIN)), dir_fd=top)
    except OSError:
        return None
    return signature_of(found)


def signature_of(status: os.stat_result) -> tuple[int, ...]:
    """Tells one state of a file from another; the last is when it changed, in nanoseconds."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _names(top: int, parts: tuple[str, ...]) -> list[str]:
    """The names in a directory that may be skills, or hold some."""
    try:
        fd = open_below(top, parts)
    except OSError:  # a link, no directory, or not for us
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
