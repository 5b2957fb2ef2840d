"""Results of profile and entity tools: matches, their reasons, and relationships."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal

from pydantic import Field, FiniteFloat

from storage.models import utc
from storage.people.models import Entity, EntityMatch, EntityPath, FormerFact, Profile, Relationship
from tools.core.result import AnyJson, OmitNone, ToolModel


class FormerValue(ToolModel):
    """A value that was replaced.

    Attributes:
        name: The fact.
        value: Its former value.
        until: The day of the replacement, UTC.
    """

    name: str
    value: AnyJson
    until: str

    @classmethod
    def of(cls, fact: FormerFact) -> FormerValue:
        """Converts a former fact."""
        return cls(name=fact.name, value=fact.value, until=utc(fact.until).date().isoformat())

    def to_text(self) -> str:
        """Formats it in a few words."""
        return f"{self.name}: {self.value} (until {self.until})"


def former_values(facts: Sequence[FormerFact] | None) -> list[FormerValue] | None:
    """Converts former facts; None if they were not requested."""
    return None if facts is None else list(map(FormerValue.of, facts))


Outcome = Literal["created", "updated"]


class UserProfile(ToolModel):
    """A user's profile.

    Attributes:
        user_id: The user.
        summary: Who the user is.
        facts: Facts, by name.
        metadata: The caller's own data.
        update_time: Unix seconds of the last update.
        former: Former values of facts, latest first; absent unless requested.
    """

    user_id: str
    summary: str
    facts: dict[str, Any]
    metadata: dict[str, Any]
    update_time: FiniteFloat
    former: OmitNone[list[FormerValue]] = None

    @classmethod
    def of(cls, profile: Profile, former: Sequence[FormerFact] | None = None) -> UserProfile:
        """Converts a profile."""
        return cls.from_attributes(
            profile, user_id=profile.identity.user_id, former=former_values(former)
        )

    def to_text(self) -> str:
        """Formats the summary, then one line per fact and per former fact."""
        facts = [f"- {name}: {value}" for name, value in self.facts.items()]
        past = [f"- {each.to_text()}" for each in self.former or ()]
        head = "Formerly:" if past else ""
        lines = (f"Profile of {self.user_id}", self.summary, *facts, head, *past)
        return "\n".join(filter(None, lines))


class FoundRelationship(ToolModel):
    """A relationship, seen from the first entity of the question.

    Attributes:
        source: Name of the source entity.
        source_type: Its kind.
        relation: The relation.
        target: Name of the target entity.
        target_type: Its kind.
        direction: "outgoing" if the first entity is the source.
        description: Further description.
        metadata: The caller's own data.
        until: The day it ended, UTC; absent while it holds.
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
        """Converts a relationship, seen from the entities with these IDs."""
        outgoing = relationship.ends[0] in ones
        until = relationship.until
        return cls.from_attributes(
            relationship,
            direction="outgoing" if outgoing else "incoming",
            until=None if until is None else utc(until).date().isoformat(),
        )

    def to_text(self) -> str:
        """Formats it as one line."""
        past = f"until {self.until}" if self.until else ""
        notes = ", ".join(filter(None, (past, self.description)))
        more = f" ({notes})" if notes else ""
        return f"{self.source} -[{self.relation}]-> {self.target}{more}"


class FoundEntity(ToolModel):
    """An entity, with the reason for the match.

    Attributes:
        name: Its name.
        entity_type: Its kind.
        summary: What it is.
        aliases: Other names.
        metadata: The caller's own data.
        importance: How much it matters, 0 to 10.
        update_time: Unix seconds of the last update.
        how: How it was matched, from the surest way to the least sure; "words" for words in its
            text, "listed" without a query.
        score: How well it matches, 0 to 1; absent in a listing.
        matched: Which of its names matched; empty for words and listings.
        former: Former values of its metadata, latest first; absent unless requested.
        relationships: The newest in both directions; absent unless it was asked for by its name.
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
    relationships: OmitNone[list[FoundRelationship]] = None

    @classmethod
    def of(
        cls,
        entity: Entity,
        match: EntityMatch | None = None,
        former: Sequence[FormerFact] | None = None,
        related: Sequence[Relationship] | None = None,
    ) -> FoundEntity:
        """Converts an entity; rounds the score to four digits."""
        return cls.from_attributes(
            entity,
            how="listed" if match is None else match.how,
            score=None if match is None else round(match.score, 4),
            matched="" if match is None else match.spelling,
            former=former_values(former),
            relationships=related and [FoundRelationship.of(each, {entity.id}) for each in related],
        )

    def to_text(self) -> str:
        """Formats a line with names, kind, summary and reason, then relationships and the past."""
        also = f", also {', '.join(self.aliases)}" if self.aliases else ""
        summary = f": {self.summary}" if self.summary else ""
        why = "" if self.score is None else f" [{self.how} {self.score:.2f}]"
        past = "; ".join(each.to_text() for each in self.former or ())
        before = f"\n  formerly {past}" if past else ""
        links = "".join(f"\n  {each.to_text()}" for each in self.relationships or ())
        return f"{self.name} ({self.entity_type}{also}){summary}{why}{links}{before}"


class EntityPage(ToolModel):
    """Entities, best first or by name.

    Attributes:
        entities: Those on this page.
        total: Number of entities on all pages.
    """

    entities: list[FoundEntity]
    total: int

    @classmethod
    def of_matches(
        cls,
        matches: Sequence[EntityMatch],
        former: Callable[[Entity], Sequence[FormerFact]] | None = None,
        related: Callable[[Entity], Sequence[Relationship]] | None = None,
    ) -> EntityPage:
        """Converts matches, optionally with former values and relationships."""
        entities = [
            FoundEntity.of(each, match, former and former(each), related and related(each))
            for match in matches
            for each in (match.entity,)
        ]
        return cls(entities=entities, total=len(entities))

    @classmethod
    def of_listing(cls, entities: Iterable[Entity], total: int) -> EntityPage:
        """Builds a page of a listing."""
        return cls(entities=[FoundEntity.of(entity) for entity in entities], total=total)

    def to_text(self) -> str:
        """Formats one line per entity."""
        if not self.entities:
            return "No entity fits." if not self.total else f"No more; there are {self.total}."
        noun = "entity" if self.total == 1 else "entities"
        shown = f"{len(self.entities)} of " if len(self.entities) < self.total else ""
        return "\n".join(
            [f"{shown}{self.total} {noun}", *(f"- {each.to_text()}" for each in self.entities)]
        )


class FoundPath(ToolModel):
    """A connection of two entities through a third one.

    Attributes:
        through: Name of the third entity.
        relationships: Those of the first entity with it, then those of the second.
    """

    through: str
    relationships: list[FoundRelationship]

    @classmethod
    def of(cls, path: EntityPath, ones: Collection[int], others: Collection[int]) -> FoundPath:
        """Converts a path; each direction is seen from the end of the path."""
        return cls(
            through=path.through,
            relationships=[
                *(FoundRelationship.of(each, ones) for each in path.first),
                *(FoundRelationship.of(each, others) for each in path.second),
            ],
        )

    def to_text(self) -> str:
        """Formats it as one line."""
        links = "; ".join(each.to_text() for each in self.relationships)
        return f"through {self.through}: {links}"


class ProfileContext(ToolModel):
    """A user's profile, or the matching entities.

    Attributes:
        operation: The requested operation.
        profile: The profile, for get_profile.
        found: The entities, for the other operations.
    """

    operation: str
    profile: OmitNone[UserProfile] = None
    found: OmitNone[EntityPage] = None

    def to_text(self) -> str:
        """Formats the profile, or one line per entity."""
        if self.profile is not None:
            return self.profile.to_text()
        return "" if self.found is None else self.found.to_text()


class EntityAnswer(ToolModel):
    """The matching entities, or their relationships.

    Attributes:
        operation: The requested operation.
        found: The entities; for check_entity_relationships those that the names refer to.
        relationships: Between the two, or of the one.
        relationship_count: Number of relationships.
        paths: Connections of the two through a third entity.
    """

    operation: str
    found: EntityPage
    relationships: list[FoundRelationship] = Field(default_factory=list)
    relationship_count: int = 0
    paths: list[FoundPath] = Field(default_factory=list)

    def to_text(self) -> str:
        """Formats one line per entity, or per relationship and path."""
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
        """Formats the outcome and the profile."""
        return f"{self.outcome}: {self.profile.to_text()}"


class SavedEntity(ToolModel):
    """The entity after saving."""

    outcome: Outcome
    entity: FoundEntity

    def to_text(self) -> str:
        """Formats the outcome and the entity."""
        return f"{self.outcome}: {self.entity.to_text()}"


class SavedRelationship(ToolModel):
    """The relationship after saving."""

    outcome: Outcome
    relationship: FoundRelationship
    created_entities: list[str]

    def to_text(self) -> str:
        """Formats the outcome and the relationship."""
        made = f" New: {', '.join(self.created_entities)}." if self.created_entities else ""
        return f"{self.outcome}: {self.relationship.to_text()}.{made}"


class DeletedEntity(ToolModel):
    """A deleted entity."""

    name: str
    entity_type: str
    relationships_deleted: int

    def to_text(self) -> str:
        """Formats it as one line for the model."""
        count = self.relationships_deleted
        return f"Deleted {self.name} ({self.entity_type}) and {count} relationships."


class DeletedRelationship(ToolModel):
    """A deleted relationship."""

    source: str
    relation: str
    target: str

    def to_text(self) -> str:
        """Formats it as one line for the model."""
        return f"Deleted {self.source} -[{self.relation}]-> {self.target}."
