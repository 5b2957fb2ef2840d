"""The user, and the people and things around them, as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from storage.errors import InvalidSourceError
from storage.models import Identity

MAX_VALUES = 65_536
"""Characters of JSON that named values may grow to."""


How = Literal["exact", "alias", "folded", "partial", "fuzzy"]
"""What it took to find a name, from the surest way to the least sure."""


class EntityType(StrEnum):
    """The kinds of entity."""

    PERSON = "person"
    PROJECT = "project"
    TEAM = "team"
    ORGANIZATION = "organization"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FormerFact:
    """What was known before something else took its place.

    Attributes:
        name: Of the fact.
        value: What it was.
        until: Unix seconds when it was replaced.
    """

    name: str
    value: Any
    until: float


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of the user.

    Attributes:
        identity: Whose it is.
        summary: Who the user is, as text.
        facts: What is known, by name.
        metadata: Free data of the caller's.
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
    """What is said of an entity; what is left out keeps what is stored.

    Attributes:
        name: Its name, or an alias of one that is stored.
        entity_type: Its kind; None means that of the stored one, else other.
        summary: What it is.
        aliases: More names; those that are stored stay.
        metadata: Free data of the caller's, merged by key; None removes a key.
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
        identity: Whose knowledge it is.
        name: As it was first written; unique among those of its type in any case and accents.
        entity_type: Its kind.
        summary: What it is.
        aliases: More names.
        metadata: Free data of the caller's.
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
    """An entity that was found, and why.

    Attributes:
        entity: The entity.
        score: How well it fits, 0 to 1.
        how: What it took to find its name; "words" where words of its text did it.
        spelling: Which of its names was found; empty for words.
    """

    entity: Entity
    score: float
    how: How | Literal["words"]
    spelling: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRelationship:
    """What is said of two entities; what is left out keeps what is stored.

    Attributes:
        source: Name of the one that does.
        relation: What it does, such as "works on".
        target: Name of the one that it is done to.
        source_type: Kind of the source, where its name alone is not enough.
        target_type: Kind of the target.
        description: More about it.
        metadata: Free data of the caller's, merged by key; None removes a key.
        replaces: "target" if the source had another target before, which it has no longer;
            "source" if the target had another source; None if that is not known.
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
        source: Name of the one that does.
        source_type: Its kind.
        relation: What it does.
        target: Name of the one that it is done to.
        target_type: Its kind.
        description: More about it.
        metadata: Free data of the caller's.
        create_time: Unix seconds when it was first saved.
        update_time: Unix seconds when it was last saved.
        ends: The identifiers of source and target.
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
    """How two entities are related through a third.

    Attributes:
        through: Name of the third.
        first: Relationships between the one and the third.
        second: Relationships between the third and the other.
    """

    through: str
    first: tuple[Relationship, ...]
    second: tuple[Relationship, ...]


def merged_values(
    label: str, stored: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns stored facts or metadata with the given ones in their place; None removes one."""
    merged = {key: value for key, value in {**stored, **given}.items() if value is not None}
    length = len(json.dumps(merged, ensure_ascii=False))
    if length > MAX_VALUES:
        raise InvalidSourceError(
            f"{label}: together with what is stored they have {length} characters of JSON;"
            f" {MAX_VALUES} are kept.",
            suggestions=("Remove what is no longer needed by giving it as null.",),
        )
    return merged
