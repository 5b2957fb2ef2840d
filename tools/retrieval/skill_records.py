"""Provides the search records of skills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage.models import Identity
from tools.retrieval.models import SKILL, ToolRecord

if TYPE_CHECKING:  # a start needs none
    from tools.agent.skillfiles.skill import Skill
    from tools.agent.skillfiles.skills import Skills

TAG = "skill"
# Tag of a skill inside the root, which anyone with write access there may have written.
OF_PROJECT = "project"


class SkillRecords:
    """The records of the skills that a model may load, by id."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills
        self._seen: tuple[Skill, ...] = ()
        self._records: Mapping[str, ToolRecord] = {}

    def current(self) -> Mapping[str, ToolRecord]:
        """Returns all records; the same object until a skill changes. Blocks."""
        found = self._skills.all()
        if found is not self._seen:
            made = map(_record_of, (each for each in found if each.is_for_models))
            self._seen, self._records = found, {each.tool_id: each for each in made}
        return self._records

    def unseen_by(self, identity: Identity) -> frozenset[str]:
        """Returns the ids of the skills that an identity may not see; blocks."""
        if self._skills.shows_all(identity):
            return frozenset()
        seen = {SKILL + each.path for each in self._skills.seen_by(identity)}
        return frozenset(self.current().keys() - seen)


def _record_of(skill: Skill) -> ToolRecord:
    return ToolRecord.model_construct(
        tool_id=SKILL + skill.path,
        name=skill.path,
        description=skill.description,
        tags=(TAG, *[OF_PROJECT] * skill.place.is_project),
        capabilities=skill.domains,
        parameters=None,
        server=skill.place.server,
        aliases=(),
        names_only=False,
    )
