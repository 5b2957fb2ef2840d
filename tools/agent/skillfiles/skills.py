"""Skills: all skills available at the moment of the call."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote_to_bytes

from storage.models import Identity
from tools.agent.skillfiles.local import LocalSkill, sightings
from tools.agent.skillfiles.places import Origin, SkillPlace, slug
from tools.agent.skillfiles.skill import MAIN, SCHEME, Skill
from tools.conversion.arguments.validation_errors import nearest
from tools.core.errors import NotFoundError, ToolError
from tools.core.toolset import ToolSet

MOST_SKILLS = 1_000
TOO_MANY = "There are too many before it; what comes after it is left out too."
LONGEST_SHOWN = 200  # limit on an unknown name that an error repeats


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A skill that cannot be offered."""

    where: str  # the directory with the SKILL.md, or the address at another server
    place: Origin
    why: str  # the reason for leaving it out


_Kept = tuple[tuple[int, ...], "LocalSkill | LeftOut"]
"""What was found in a directory, after the state of its SKILL.md."""


class Skills:
    """The skills of all places; re-reads those that changed. Thread-safe.

    Nothing is read before the first call, and later calls check only the state of each SKILL.md.
    Links to a skill and copies of its SKILL.md count once, in the first place they appear. If
    several skills share a name, the first keeps it and the others are prefixed with the label of
    their place. A skill of another server never replaces a local one.
    """

    def __init__(
        self,
        # Where to search, in order of precedence; iterated each time
        places: Iterable[SkillPlace] = (),
        *,
        # The owner of the machine, who alone sees skills in the home directory.
        owner: str = "local",
        # Returns the skills of other servers; the same object until one changes.
        others: Callable[[], Sequence[Skill]] = tuple,
    ) -> None:
        self._places = places
        self._owner = owner
        self._others = others
        self.changes = 0  # how often the skills have changed, counting the first scan
        self._of_others: Sequence[Skill] = ()
        self._looking = threading.Lock()
        self._looked = -math.inf
        self._kept: dict[Path, _Kept] = {}
        self._skills: tuple[Skill, ...] = ()
        self._left_out: tuple[LeftOut, ...] = ()

    def all(self, max_age: float = 0.0) -> tuple[Skill, ...]:
        """Returns every skill; the same object until one changes. Blocks.

        It may be the result of a scan up to `max_age` seconds ago.
        """
        with self._looking:
            if time.monotonic() - self._looked < max_age:
                return self._skills
            kept, others = self._look(), self._others()
            self._looked = time.monotonic()
            if others is not self._of_others or [*kept.values()] != [*self._kept.values()]:
                self._kept, self._of_others = kept, others
                named, left_out = _assign_paths([found for _, found in kept.values()])
                beside, clashing = _remote_skills(named, others)
                self._skills, self._left_out = (*named, *beside), (*left_out, *clashing)
                self.changes += 1
            return self._skills

    def seen_by(
        self, identity: Identity, tool_set: ToolSet | None = None, max_age: float = 0.0
    ) -> tuple[Skill, ...]:
        """Returns the skills that a user with these tools (None: all) may see; blocks."""
        is_owner = self.shows_all(identity)
        return tuple(
            each
            for each in self.all(max_age)
            if (is_owner or not each.place.is_personal) and _is_admitted(each.place, tool_set)
        )

    def shows_all(self, identity: Identity) -> bool:
        """Returns whether the caller owns the machine."""
        return identity.user_id == self._owner

    def left_out(self) -> tuple[LeftOut, ...]:
        """Returns what has a SKILL.md but cannot be offered, and why; blocks."""
        self.all()
        return self._left_out

    def find(self, name: str, identity: Identity, tool_set: ToolSet | None = None) -> Skill:
        """Returns the skill with this name or address, perhaps after its place's label; blocks."""
        asked = name.removeprefix(SCHEME).removesuffix(f"/{MAIN}").replace(":", "/").casefold()
        skills = self.seen_by(identity, tool_set)
        for called in (_path, _qualified):
            for each in skills:
                if called(each).casefold() == asked:
                    return each
        meant = nearest(asked, [each.path for each in skills])
        raise NotFoundError(
            f"No skill is called {name[:LONGEST_SHOWN]!r}; there are {len(skills)}.",
            suggestions=[meant] if meant else [],
            next_actions=["Call list_skills to see them."],
        )

    def at(
        self, uri: str, identity: Identity, tool_set: ToolSet | None = None
    ) -> tuple[Skill, str]:
        """Returns the skill that contains an address, and the path inside it; blocks."""
        path = path_of(uri)
        skills = self.seen_by(identity, tool_set)
        found = [each for each in skills if path.startswith(f"{each.path}/")]
        if not uri.startswith(SCHEME) or not found:
            raise NotFoundError(f"{uri!r} is the address of no skill.")
        skill = max(found, key=lambda each: len(each.path))
        return skill, path.removeprefix(f"{skill.path}/")

    def _look(self) -> dict[Path, _Kept]:
        """Scans for every SKILL.md, each file once, and reads those that changed."""
        kept: dict[Path, _Kept] = {}
        seen = set()
        everything = ((place, each) for place in self._places for each in sightings(place))
        for number, (place, sighting) in enumerate(everything):
            if sighting.signature is None or number >= MOST_SKILLS:
                left = LeftOut(str(sighting.directory), place, TOO_MANY)
                kept[sighting.directory] = (), left
                if number >= MOST_SKILLS:
                    break
                continue
            file = sighting.signature[:2]
            if file in seen:
                continue
            seen.add(file)
            before = self._kept.get(sighting.directory)
            if before is None or before[0] != sighting.signature:
                before = sighting.signature, _read(place, sighting.directory)
            kept[sighting.directory] = before
        return kept


def path_of(uri: str) -> str:
    """Returns the path in a skill address, below the scheme."""
    return os.fsdecode(unquote_to_bytes(uri.removeprefix(SCHEME)))


def _is_admitted(place: Origin, tool_set: ToolSet | None) -> bool:
    if tool_set is None:
        return True
    if place.is_project and tool_set.is_off_root:
        return False
    return not place.server or tool_set.admits_server(place.server)


def _read(place: SkillPlace, directory: Path) -> LocalSkill | LeftOut:
    try:
        return LocalSkill.read(place, directory)
    except ToolError as error:
        return LeftOut(str(directory), place, error.message)


def _path(skill: Skill) -> str:
    return skill.path


def _qualified(skill: Skill) -> str:
    return f"{skill.place.label}/{skill.name}"


def _remote_skills(
    named: Sequence[LocalSkill], others: Sequence[Skill]
) -> tuple[list[Skill], list[LeftOut]]:
    """Returns the skills of other servers without a name conflict here, and the rest."""
    taken = {called(each) for each in named for called in (_path, _qualified)}
    above = {each for path in taken for each in _ancestors(path)}
    skills: dict[str, Skill] = {}
    left_out = []
    for each in others:
        called = each.path.casefold()
        if called not in skills and called not in above and taken.isdisjoint(_ancestors(called)):
            skills[called] = each
        else:
            why = f"Another skill is called {each.path!r} already, or has files there."
            left_out.append(LeftOut(each.uri(), each.place, why))
    return list(skills.values()), left_out


def _ancestors(path: str) -> Iterator[str]:
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _assign_paths(found: Sequence[LocalSkill | LeftOut]) -> tuple[list[LocalSkill], list[LeftOut]]:
    """Assigns each skill a unique path; returns the skills and what is left out."""
    skills: dict[str, LocalSkill] = {}
    copies = set()
    left_out = [each for each in found if isinstance(each, LeftOut)]
    for each in found:
        if isinstance(each, LeftOut) or (each.name, each.main_digest) in copies:
            continue
        copies.add((each.name, each.main_digest))
        inner = each.directory.relative_to(each.place.path)
        longest = f"{each.place.label}/{slug(str(inner))}/{each.name}"
        path = next(
            (path for path in (each.name, _qualified(each), longest) if path not in skills), ""
        )
        if path:
            skills[path] = replace(each, path=path)
        else:
            why = f"Others are called {each.name!r} already."
            left_out.append(LeftOut(str(each.directory), each.place, why))
    return list(skills.values()), left_out
