"""Skills: all that there are, as they are at the moment of the question."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote_to_bytes

from storage.models import Identity
from tools.agent.skillfiles.local import LocalSkill
from tools.agent.skillfiles.places import Origin, SkillPlace, slug
from tools.agent.skillfiles.scan import Sighting, sightings
from tools.agent.skillfiles.skill import MAIN, SCHEME, Skill
from tools.conversion.arguments.validation_errors import nearest
from tools.core.errors import NotFoundError, ToolError
from tools.core.toolset import ToolSet

MOST_SKILLS = 1_000
TOO_MANY = "There are too many before it; what comes after it is left out too."
LONGEST_SHOWN = 200
"""Characters of an unknown name that are repeated."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What claims to be a skill and is none here.

    Attributes:
        where: The directory that has a SKILL.md, or the address at another server.
        place: Where it was found.
        why: Why it is left out.
    """

    where: str
    place: Origin
    why: str


@dataclass(frozen=True, slots=True)
class _Kept:
    signature: tuple[int, ...]
    found: LocalSkill | LeftOut


class Skills:
    """The skills of all places; what has changed is read anew. Safe to share between threads.

    Nothing is looked at before the first question, and no more than the state of each SKILL.md at
    every other one. The same skill in two places, by a link or as a copy of its SKILL.md, is one,
    that of the first place. Of several that are called the same, the first keeps the name, and the
    others have the label of their place before it. None of another server takes the place of one
    that lies here.

    Args:
        places: Where to look, in the order in which they count; looked at anew each time.
        owner: The user whose machine it is, who alone sees what lies in the home directory.
        others: Gives the skills of other servers; the same object until one of them changes.

    Attributes:
        changes: How often another look found others, the first one among them.
    """

    def __init__(
        self,
        places: Iterable[SkillPlace] = (),
        *,
        owner: str = "local",
        others: Callable[[], Sequence[Skill]] = tuple,
    ) -> None:
        self._places = places
        self._owner = owner
        self._others = others
        self.changes = 0
        self._of_others: Sequence[Skill] = ()
        self._looking = threading.Lock()
        self._kept: dict[Path, _Kept] = {}
        self._skills: tuple[Skill, ...] = ()
        self._left_out: tuple[LeftOut, ...] = ()

    def all(self) -> tuple[Skill, ...]:
        """Every skill; the same object until one of them changes. Blocks."""
        with self._looking:
            kept, others = self._look(), self._others()
            if others is not self._of_others or [*kept.values()] != [*self._kept.values()]:
                self._kept, self._of_others = kept, others
                named, left_out = _named([each.found for each in kept.values()])
                beside, clashing = _beside(named, others)
                self._skills, self._left_out = (*named, *beside), (*left_out, *clashing)
                self.changes += 1
            return self._skills

    def seen_by(self, identity: Identity, tool_set: ToolSet | None = None) -> tuple[Skill, ...]:
        """The skills that somebody may see; blocks.

        Args:
            identity: Who it is.
            tool_set: The tools that they may call; of a server of which that is none, they see no
                skill either. None means all.
        """
        is_owner = self.shows_all(identity)
        return tuple(
            each
            for each in self.all()
            if (is_owner or not each.place.is_personal) and _is_admitted(each.place, tool_set)
        )

    def shows_all(self, identity: Identity) -> bool:
        """Whether it is whose machine it is who asks."""
        return identity.user_id == self._owner

    def left_out(self) -> tuple[LeftOut, ...]:
        """What has a SKILL.md and is no skill here, and why; blocks."""
        self.all()
        return self._left_out

    def find(self, name: str, identity: Identity, tool_set: ToolSet | None = None) -> Skill:
        """The skill of that name; blocks.

        Args:
            name: Its name or its address; the label of its place may stand before it.
            identity: Who asks.
            tool_set: The tools that they may call; None means all.

        Raises:
            NotFoundError: If there is none; it suggests what is called nearly so.
        """
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
        """The skill that an address is in, and the path of what is there; blocks.

        Args:
            uri: As `Skill.uri`, or of another file.
            identity: Who asks.
            tool_set: The tools that they may call; None means all.

        Raises:
            NotFoundError: If no skill that they may see is there.
        """
        path = path_of(uri)
        skills = self.seen_by(identity, tool_set)
        found = [each for each in skills if path.startswith(f"{each.path}/")]
        if not uri.startswith(SCHEME) or not found:
            raise NotFoundError(f"{uri!r} is the address of no skill.")
        skill = max(found, key=lambda each: len(each.path))
        return skill, path.removeprefix(f"{skill.path}/")

    def _look(self) -> dict[Path, _Kept]:
        """Every SKILL.md that is there now, each file once, read where it has changed."""
        kept: dict[Path, _Kept] = {}
        seen = set()
        for number, (place, sighting) in enumerate(self._sighted()):
            if sighting.signature is None or number >= MOST_SKILLS:
                left = LeftOut(str(sighting.directory), place, TOO_MANY)
                kept[sighting.directory] = _Kept((), left)
                if number >= MOST_SKILLS:
                    break
                continue
            file = sighting.signature[:2]
            if file in seen:
                continue
            seen.add(file)
            before = self._kept.get(sighting.directory)
            if before is None or before.signature != sighting.signature:
                before = _Kept(sighting.signature, _read(place, sighting.directory))
            kept[sighting.directory] = before
        return kept

    def _sighted(self) -> Iterator[tuple[SkillPlace, Sighting]]:
        for place in self._places:
            for sighting in sightings(place):
                yield place, sighting


def path_of(uri: str) -> str:
    """What an address names, beneath all skills."""
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


def _beside(
    named: Sequence[LocalSkill], others: Sequence[Skill]
) -> tuple[list[Skill], list[LeftOut]]:
    """The skills of other servers that no skill here is called like, and those that one is."""
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
    """A path, and all directories that it is in."""
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _named(found: Sequence[LocalSkill | LeftOut]) -> tuple[list[LocalSkill], list[LeftOut]]:
    """The skills, each by a path of its own, and what is left out."""
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
