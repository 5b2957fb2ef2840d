"""What tools on profiles and entities answer: who was found, why, and how they are related."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal

from pydantic import Field, FiniteFloat

from storage.people.models import (
    Entity,
    EntityMatch,
    EntityPath,
    FormerFact,
    Profile,
    Relationship,
)
from tools.answers.dates import utc
from tools.answers.former import FormerValue, former_values
from tools.core.result import OmitNone, ToolModel

Outcome = Literal["created", "updated"]


def _day(time: float) -> str:
    return utc(time).date().isoformat()


class UserProfile(ToolModel):
    """What is known of a user.

    Attributes:
        user_id: Whose it is.
        summary: Who the user is.
        facts: What is known, by name.
        metadata: Free data of the caller's.
        update_time: Unix seconds when it was last saved.
        former: Values of facts that others replaced, the latest first; absent unless asked for.
    """

    user_id: str
    summary: str
    facts: dict[str, Any]
    metadata: dict[str, Any]
    update_time: FiniteFloat
    former: OmitNone[list[FormerValue]] = None

    @classmethod
    def of(cls, profile: Profile, former: Sequence[FormerFact] | None = None) -> UserProfile:
        """The profile as a tool answers it."""
        return cls(
            user_id=profile.identity.user_id,
            summary=profile.summary,
            facts=dict(profile.facts),
            metadata=dict(profile.metadata),
            update_time=profile.update_time,
            former=former_values(former),
        )

    def to_text(self) -> str:
        """The summary and a line for each fact, then for each former one."""
        facts = [f"- {name}: {value}" for name, value in self.facts.items()]
        past = [f"- {each.to_text()}" for each in self.former or ()]
        head = "Formerly:" if past else ""
        lines = (f"Profile of {self.user_id}", self.summary, *facts, head, *past)
        return "\n".join(filter(None, lines))


class FoundEntity(ToolModel):
    """An entity, and why it was found.

    Attributes:
        name: Its name.
        entity_type: Its kind.
        summary: What it is.
        aliases: More names.
        metadata: Free data of the caller's.
        importance: How much it matters, 0 to 10.
        update_time: Unix seconds when it was last saved.
        how: What it took to find it, from the surest way to the least sure; "words" where words of
            its text did it, "listed" where nothing was asked for.
        score: How well it fits, 0 to 1; absent in a listing.
        matched: Which of its names was found; empty for words and listings.
        former: Values of its metadata that others replaced, the latest first; absent unless asked
            for.
    """

    name: str
    entity_type: str
    summary: str
    aliases: list[str]
    metadata: dict[str, Any]
    importance: FiniteFloat
    update_time: FiniteFloat
    how: Literal["exact", "alias", "folded", "partial", "fuzzy", "words", "listed"]
    score: OmitNone[FiniteFloat]
    matched: str
    former: OmitNone[list[FormerValue]] = None

    @classmethod
    def of(
        cls,
        entity: Entity,
        match: EntityMatch | None = None,
        former: Sequence[FormerFact] | None = None,
    ) -> FoundEntity:
        """The entity as a tool answers it; the score to four digits."""
        return cls(
            name=entity.name,
            entity_type=entity.entity_type,
            summary=entity.summary,
            aliases=list(entity.aliases),
            metadata=dict(entity.metadata),
            importance=entity.importance,
            update_time=entity.update_time,
            how="listed" if match is None else match.how,
            score=None if match is None else round(match.score, 4),
            matched="" if match is None else match.spelling,
            former=former_values(former),
        )

    def to_text(self) -> str:
        """One line: names, kind, summary, and why; one more for what held before."""
        also = f", also {', '.join(self.aliases)}" if self.aliases else ""
        summary = f": {self.summary}" if self.summary else ""
        why = "" if self.score is None else f" [{self.how} {self.score:.2f}]"
        past = "; ".join(each.to_text() for each in self.former or ())
        before = f"\n  formerly {past}" if past else ""
        return f"{self.name} ({self.entity_type}{also}){summary}{why}{before}"


class EntityPage(ToolModel):
    """Entities, best first or by name.

    Attributes:
        entities: Those on this page.
        total: How many there are.
    """

    entities: list[FoundEntity]
    total: int

    @classmethod
    def found(
        cls,
        matches: Sequence[EntityMatch],
        former: Callable[[Entity], Sequence[FormerFact]] | None = None,
    ) -> EntityPage:
        """Matches as a tool answers them, where asked for with what held before."""
        entities = [
            FoundEntity.of(match.entity, match, former and former(match.entity))
            for match in matches
        ]
        return cls(entities=entities, total=len(entities))

    @classmethod
    def listed(cls, entities: Iterable[Entity], total: int) -> EntityPage:
        """A page of a listing."""
        return cls(entities=[FoundEntity.of(entity) for entity in entities], total=total)

    def to_text(self) -> str:
        """A line for each entity."""
        if not self.entities:
            return "No entity fits." if not self.total else f"No more; there are {self.total}."
        noun = "entity" if self.total == 1 else "entities"
        shown = f"{len(self.entities)} of " if len(self.entities) < self.total else ""
        return "\n".join(
            [f"{shown}{self.total} {noun}", *(f"- {each.to_text()}" for each in self.entities)]
        )


class FoundRelationship(ToolModel):
    """A relationship, as seen from the first entity of the question.

    Attributes:
        source: Name of the one that does.
        source_type: Its kind.
        relation: What it does.
        target: Name of the one that it is done to.
        target_type: Its kind.
        direction: "outgoing" where the first entity is the source.
        description: More about it.
        metadata: Free data of the caller's.
        until: The day on which it ended, UTC; absent while it holds.
    """

    source: str
    source_type: str
    relation: str
    target: str
    target_type: str
    direction: Literal["outgoing", "incoming"]
    description: str
    metadata: dict[str, Any]
    until: OmitNone[str] = None

    @classmethod
    def of(cls, relationship: Relationship, ones: Collection[int]) -> FoundRelationship:
        """The relationship as seen from the entities with these identifiers."""
        outgoing = relationship.ends[0] in ones
        return cls(
            source=relationship.source,
            source_type=relationship.source_type,
            relation=relationship.relation,
            target=relationship.target,
            target_type=relationship.target_type,
            direction="outgoing" if outgoing else "incoming",
            description=relationship.description,
            metadata=dict(relationship.metadata),
            until=None if relationship.until is None else _day(relationship.until),
        )

    def to_text(self) -> str:
        """One line."""
        past = f"until {self.until}" if self.until else ""
        notes = ", ".join(filter(None, (past, self.description)))
        more = f" ({notes})" if notes else ""
        return f"{self.source} -[{self.relation}]-> {self.target}{more}"


class FoundPath(ToolModel):
    """How two entities are related through a third.

    Attributes:
        through: Name of the third.
        relationships: First those of the first entity with it, then those of the second.
    """

    through: str
    relationships: list[FoundRelationship]

    @classmethod
    def of(cls, path: EntityPath, ones: Collection[int], others: Collection[int]) -> FoundPath:
        """The path as a tool answers it; each direction is seen from the end of the path."""
        return cls(
            through=path.through,
            relationships=[
                *(FoundRelationship.of(each, ones) for each in path.first),
                *(FoundRelationship.of(each, others) for each in path.second),
            ],
        )

    def to_text(self) -> str:
        """One line."""
        links = "; ".join(each.to_text() for each in self.relationships)
        return f"through {self.through}: {links}"


class ProfileContext(ToolModel):
    """What is known of a user, or the entities that were found.

    Attributes:
        operation: What was asked for.
        profile: The profile, for get_profile.
        found: The entities, for the other operations.
    """

    operation: str
    profile: OmitNone[UserProfile] = None
    found: OmitNone[EntityPage] = None

    def to_text(self) -> str:
        """The profile, or a line for each entity."""
        if self.profile is not None:
            return self.profile.to_text()
        return "" if self.found is None else self.found.to_text()


class EntityAnswer(ToolModel):
    """The entities that were found, or how they are related.

    Attributes:
        operation: What was asked for.
        found: The entities; for check_entity_relationships those that the names mean.
        relationships: Between them, or of the one.
        relationship_count: How many there are.
        paths: How both are related through a third.
    """

    operation: str
    found: EntityPage
    relationships: list[FoundRelationship] = Field(default_factory=list)
    relationship_count: int = 0
    paths: list[FoundPath] = Field(default_factory=list)

    def to_text(self) -> str:
        """A line for each entity, or for each relationship and path."""
        if self.operation != "check_entity_relationships":
            return self.found.to_text()
        names = " and ".join(dict.fromkeys(each.name for each in self.found.entities))
        count = self.relationship_count
        head = f"{names}: {count or 'no'} relationship{'' if count == 1 else 's'}"
        lines = [each.to_text() for each in self.relationships]
        lines += [path.to_text() for path in self.paths]
        return "\n".join([head, *(f"- {line}" for line in lines)])


class SavedProfile(ToolModel):
    """The profile after saving."""

    outcome: Outcome
    profile: UserProfile

    def to_text(self) -> str:
        """What happened, and the profile."""
        return f"{self.outcome}: {self.profile.to_text()}"


class SavedEntity(ToolModel):
    """The entity after saving."""

    outcome: Outcome
    entity: FoundEntity

    def to_text(self) -> str:
        """What happened, and the entity."""
        return f"{self.outcome}: {self.entity.to_text()}"


class SavedRelationship(ToolModel):
    """The relationship after saving."""

    outcome: Outcome
    relationship: FoundRelationship
    created_entities: list[str]

    def to_text(self) -> str:
        """What happened, and the relationship."""
        made = f" New: {', '.join(self.created_entities)}." if self.created_entities else ""
        return f"{self.outcome}: {self.relationship.to_text()}.{made}"


class DeletedEntity(ToolModel):
    """What went."""

    name: str
    entity_type: str
    relationships_deleted: int

    def to_text(self) -> str:
        """One line for the model."""
        count = self.relationships_deleted
        return f"Deleted {self.name} ({self.entity_type}) and {count} relationships."


class DeletedRelationship(ToolModel):
    """What went."""

    source: str
    relation: str
    target: str

    def to_text(self) -> str:
        """One line for the model."""
        return f"Deleted {self.source} -[{self.relation}]-> {self.target}."
