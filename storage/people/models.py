"""Data classes of the user, people and things."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from storage.errors import InvalidSourceError
from storage.models import Identity

MAX_VALUES = 65_536
"""Maximum characters of JSON for facts or metadata."""


How = Literal["exact", "alias", "folded", "partial", "fuzzy"]
"""How a name matched, from the most certain way to the least."""


class EntityType(StrEnum):
    """The types of entity."""

    PERSON = "person"
    PROJECT = "project"
    TEAM = "team"
    ORGANIZATION = "organization"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FormerFact:
    """A value that another has replaced.

    Attributes:
        name: The fact's name.
        value: The former value.
        until: Unix seconds when it was replaced.
    """

    name: str
    value: Any
    until: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of the user.

    Attributes:
        identity: The owner.
        summary: A description of the user.
        facts: Facts by name.
        metadata: The caller's data.
        create_time: Unix seconds when it was first saved.
        update_time: Unix seconds when it was last saved.
    """

    identity: Identity
    summary: str
    facts: Mapping[str, Any]
    metadata: Mapping[str, Any]
    create_time: float
    update_time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntity:
    """New data of an entity; omitted fields keep the stored values.

    Attributes:
        name: Its name, or an alias of a stored entity.
        entity_type: Its type; None means that of the stored one, else `other`.
        summary: A description.
        aliases: Further names, added to the stored ones.
        metadata: The caller's data, merged by key; None removes a key.
        importance: How much it matters, 0 to 10.
    """

    name: str
    entity_type: EntityType | None = None
    summary: str | None = None
    aliases: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    importance: float | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, project, team, organization or other thing with a name.

    Attributes:
        id: Stable identifier.
        identity: The owner.
        name: As first written; unique within its type, regardless of case and accents.
        entity_type: Its type.
        summary: A description.
        aliases: Further names.
        metadata: The caller's data.
        importance: How much it matters, 0 to 10.
        create_time: Unix seconds when it was first saved.
        update_time: Unix seconds when it was last saved.
    """

    id: int
    identity: Identity
    name: str
    entity_type: EntityType
    summary: str
    aliases: tuple[str, ...]
    metadata: Mapping[str, Any]
    importance: float
    create_time: float
    update_time: float


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """A found entity, and how it matched.

    Attributes:
        entity: The entity.
        score: How well it matches, 0 to 1.
        how: How its name matched; "words" if words of its text matched.
        spelling: The name that matched; empty for words.
    """

    entity: Entity
    score: float
    how: How | Literal["words"]
    spelling: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRelationship:
    """New data of a relationship; omitted fields keep the stored values.

    Attributes:
        source: Name of the subject.
        relation: The relation, such as "works on".
        target: Name of the object.
        source_type: Type of the source, if its name is ambiguous.
        target_type: Type of the target.
        description: Further details.
        metadata: The caller's data, merged by key; None removes a key.
        replaces: "target" if the source's earlier target no longer holds; "source" if the target's
            earlier source no longer holds; None if unknown.
    """

    source: str
    relation: str
    target: str
    source_type: EntityType | None = None
    target_type: EntityType | None = None
    description: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    replaces: Literal["target", "source"] | None = None


@dataclass(frozen=True, slots=True)
class Relationship:
    """A directed relationship between two entities.

    Attributes:
        source: Name of the subject.
        source_type: Its type.
        relation: The relation.
        target: Name of the object.
        target_type: Its type.
        description: Further details.
        metadata: The caller's data.
        create_time: Unix seconds when it was first saved.
        update_time: Unix seconds when it was last saved.
        ends: The ids of source and target.
        until: Unix seconds when it ended; None while it holds.
    """

    source: str
    source_type: EntityType
    relation: str
    target: str
    target_type: EntityType
    description: str
    metadata: Mapping[str, Any]
    create_time: float
    update_time: float
    ends: tuple[int, int]
    until: float | None = None


@dataclass(frozen=True, slots=True)
class EntityPath:
    """A path between two entities through a third.

    Attributes:
        through: Name of the third entity.
        first: Relationships between the first and the third.
        second: Relationships between the third and the second.
    """

    through: str
    first: tuple[Relationship, ...]
    second: tuple[Relationship, ...]


def merged_values(
    label: str, stored: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Merges given facts or metadata into the stored ones; None removes a key."""
    merged = {key: value for key, value in {**stored, **given}.items() if value is not None}
    length = len(json.dumps(merged, ensure_ascii=False))
    if length > MAX_VALUES:
        raise InvalidSourceError(
            f"{label}: with the stored values this is {length} characters of JSON;"
            f" at most {MAX_VALUES} are stored.",
            suggestions=("Remove values by setting them to null.",),
        )
    return merged
