"""Skills on this machine: directories whose files are opened when they are read."""

from __future__ import annotations

import hashlib
import heapq
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tools.agent.skillfiles.places import SkillPlace, slug
from tools.agent.skillfiles.skill import (
    DESCRIPTION_CHARACTERS,
    MAIN,
    MOST_BYTES,
    MOST_FILES,
    FrontMatter,
    ManifestFile,
    Skill,
    SkillFile,
    text_of,
)
from tools.core.errors import NotFoundError, ToolError, UnavailableError
from tools.core.unicode_safety import codes, hidden, revealed
from tools.sandbox.files.listing import list_entries
from tools.sandbox.files.openat import identity, open_below
from tools.sandbox.files.sandbox import Sandbox

MOST_LEVELS = 3  # limit on the depth of directories that only group skills
MOST_DIRECTORIES = 1_000  # limit on the directories of a place, and on the names in each
_SYSTEM = ".system"  # Codex's directory for its bundled skills; no other hidden directory has any


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
        if (found := _signature(top, "/".join((*parts, MAIN)))) is not None:
            yield Sighting(path.joinpath(*parts), found)
        elif len(parts) < MOST_LEVELS:
            waiting.extend((*parts, name) for name in _names(top, parts))
    if waiting:
        yield Sighting(path.joinpath(*waiting[0]), None)


def _signature(top: int, path: str, *, follows: bool = True) -> tuple[int, ...] | None:
    """Returns the state of a file; None if there is none."""
    try:
        return signature_of(os.stat(path, dir_fd=top, follow_symlinks=follows))
    except OSError:
        return None


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
            names = (
                each.name
                for each in entries
                if (not each.name.startswith(".") or each.name == _SYSTEM)
                and (each.is_symlink() or each.is_dir(follow_symlinks=False))
            )
            return heapq.nsmallest(MOST_DIRECTORIES, names)
    finally:
        os.close(fd)


MOST_MAIN_BYTES = 262_144  # limit on a SKILL.md: a larger one would not fit any model's context
MOST_ENTRIES = 2_048  # limit on directory entries, including directories, to scan for files
MOST_DEPTH = 10

SETTLED_SECONDS = 2.0
"""Minimum age of a file before its digest is cached: file timestamps are coarse."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
LONGEST_NAME = 64
_PASSED_OVER = frozenset({"__pycache__", "node_modules"})


class _Found(NamedTuple):
    """The contents of a skill's directory: files with their state signatures."""

    files: dict[SkillFile, tuple[int, ...]]
    directories: frozenset[str]
    too_many: bool


@dataclass(frozen=True, kw_only=True)
class LocalSkill(Skill):
    """A skill in a directory."""

    place: SkillPlace
    directory: Path
    main_digest: str = ""
    _measured: dict[tuple[int, ...], tuple[int, str]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _nested: dict[str, tuple[tuple[int, ...], LocalSkill]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @classmethod
    def read(cls, place: SkillPlace, directory: Path) -> LocalSkill:
        """Reads a SKILL.md."""
        data = _read(place.sandbox.within(str(directory)), MAIN, MOST_MAIN_BYTES)
        text = text_of(data, MAIN)
        found = FrontMatter.of(text)
        given = found.fields.get("name")
        named = given if isinstance(given, str) else directory.name
        name = named if is_name(named) else slug(named)
        said = found.description
        problems = [*found.problems]
        if found.fields and not isinstance(given, str):
            problems.append("It has no name.")
        if name != named:
            problems.append(f"Its name is {revealed(repr(named))[:100]}, not a-z, 0-9 and hyphens.")
        if found.fields and not found.text("description"):
            problems.append("It has no description.")
        if len(found.text("description")) > DESCRIPTION_CHARACTERS:
            problems.append(f"Its description has more than {DESCRIPTION_CHARACTERS} characters.")
        if odd := hidden(said):
            problems.append(f"Its description hides characters ({codes(odd[:3])}).")
        return cls(
            path=name,
            name=name,
            description=revealed(said),
            frontmatter=found.fields,
            place=place,
            directory=directory,
            main_digest=hashlib.sha256(data).hexdigest(),
            problems=tuple(problems),
        )

    @property
    def where(self) -> str:
        """Its directory."""
        return str(self.directory)

    @cached_property
    def files(self) -> Sandbox:
        """The files inside its directory; links cannot lead out of it."""
        return self.place.sandbox.within(str(self.directory))

    def listed(self) -> tuple[list[SkillFile], bool]:
        """Lists its files, SKILL.md first, and whether a size limit was exceeded.

        Omits links, dotfiles and generated files.
        """
        found = self._scan()
        return list(found.files), found.too_many

    def directories(self) -> frozenset[str]:
        """Returns its subdirectories, including empty ones."""
        return self._scan().directories

    def manifest(self) -> tuple[ManifestFile, ...]:
        """Returns each readable file; reads only what has changed."""
        found = self._scan()
        if found.too_many:
            raise UnavailableError(
                f"It has more than {MOST_FILES} files, or more than {MOST_BYTES:,} bytes."
            )
        known: dict[tuple[int, ...], tuple[int, str]] = {}
        files = []
        for each, signature in found.files.items():
            measured = self._measured.get(signature)
            if measured is None:
                try:
                    measured = self.measured(each.path)
                except ToolError:  # unreadable, so it is not served
                    continue
            if time.time() - signature[-1] / 1e9 > SETTLED_SECONDS:
                known[signature] = measured
            files.append(ManifestFile(each.path, *measured))
        self._measured.clear()
        self._measured.update(known)
        if not files or files[0] != (main := ManifestFile(MAIN, files[0].size, self._main)):
            raise UnavailableError("Its SKILL.md is being changed.")
        return (main, *files[1:])

    def nested(self) -> tuple[LocalSkill, ...]:
        """Returns the valid skills in its subdirectories."""
        found = []
        for each, signature in self._scan().files.items():
            inner = each.path.removesuffix(f"/{MAIN}")
            if inner == each.path:
                continue
            known = self._nested.get(inner)
            if known is None or known[0] != signature:
                try:
                    read = LocalSkill.read(self.place, self.directory / inner)
                except ToolError:  # an ordinary file
                    continue
                known = signature, replace(read, path=f"{self.path}/{inner}")
                self._nested[inner] = known
            if known[1].is_conforming and known[1].name == inner.rpartition("/")[2]:
                found.append(known[1])
        return tuple(found)

    def data(self, path: str) -> bytes:
        """Returns the bytes of one of its files."""
        parts = path.split("/")
        if len(parts) > MOST_DEPTH or any(map(_is_passed_over, parts)):
            raise NotFoundError(f"{path!r} is not a file in the skill {self.path!r}.")
        return _read(self.files, path, MOST_BYTES)

    @property
    def _main(self) -> str:
        return f"sha256:{self.main_digest}"

    def _scan(self) -> _Found:
        closed = self.files.closed()
        fd = self.files.open_directory()
        try:
            listing = list_entries(
                fd,
                ".",
                depth=MOST_DEPTH,
                limit=MOST_ENTRIES,
                hides=lambda status: identity(status) in closed,
                leaves_out=_is_passed_over,
            )
            files = [
                SkillFile(each.path, each.size) for each in listing.entries if each.type == "file"
            ]
            files.sort(key=lambda each: (each.path != MAIN, each.path))
            signed = {
                # A file that is gone by now has changed at this moment.
                each: _signature(fd, each.path, follows=False) or (time.time_ns(),)
                for each in files[:MOST_FILES]
            }
        finally:
            os.close(fd)
        too_many = listing.truncated or len(files) > MOST_FILES
        return _Found(
            signed,
            frozenset(each.path for each in listing.entries if each.type == "directory"),
            too_many or sum(each.size for each in files) > MOST_BYTES,
        )


def _read(files: Sandbox, path: str, most: int) -> bytes:
    found = files.read(path, max_bytes=most)
    if found.truncated:
        raise UnavailableError(
            f"{path!r} has more than {most:,} bytes.",
            next_actions=["Use the file where it lies, or load another one."],
        )
    return found.data


def is_name(text: str) -> bool:
    """Returns whether this is a valid skill name."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def _is_passed_over(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.strip(".") != "" and (name.startswith(".") or name in _PASSED_OVER)
