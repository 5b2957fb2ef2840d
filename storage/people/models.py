"""Data classes of the user, people and things."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from storage.errors import InvalidSourceError
from storage.models import Identity

MAX_VALUES = 65_536  # maximum characters of JSON for facts or metadata


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
    """A value that another has replaced."""

    name: str
    value: Any
    until: float  # Unix seconds when it was replaced


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of the user."""

    identity: Identity
    summary: str
    facts: Mapping[str, Any]  # facts by name
    metadata: Mapping[str, Any]
    create_time: float  # Unix seconds when it was first saved
    update_time: float  # Unix seconds when it was last saved


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntity:
    """New data of an entity; omitted fields keep the stored values."""

    name: str
    entity_type: EntityType | None = None  # None: that of the stored one, else `other`
    summary: str | None = None
    aliases: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)  # merged; None removes a key
    importance: float | None = None  # how much it matters, 0 to 10


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, project, team, organization or other thing with a name."""

    id: int
    identity: Identity
    name: str  # as first written; unique within its type, regardless of case and accents
    entity_type: EntityType
    summary: str
    aliases: tuple[str, ...]
    metadata: Mapping[str, Any]
    importance: float  # how much it matters, 0 to 10
    create_time: float  # Unix seconds when it was first saved
    update_time: float  # Unix seconds when it was last saved


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """A found entity, and how it matched."""

    entity: Entity
    score: float  # how well it matches, 0 to 1
    how: How | Literal["words"]  # how its name matched; "words" if words of its text matched
    spelling: str  # the name that matched; empty for words


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRelationship:
    """New data of a relationship; omitted fields keep the stored values."""

    source: str
    relation: str  # the relation, such as "works on"
    target: str
    source_type: EntityType | None = None  # type of the source, if its name is ambiguous
    target_type: EntityType | None = None
    description: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)  # merged; None removes a key
    # "target" if the source's earlier target no longer holds; "source" if the target's earlier
    # source no longer holds; None if unknown
    replaces: Literal["target", "source"] | None = None


@dataclass(frozen=True, slots=True)
class Relationship:
    """A directed relationship between two entities."""

    source: str
    source_type: EntityType
    relation: str
    target: str
    target_type: EntityType
    description: str
    metadata: Mapping[str, Any]
    create_time: float  # Unix seconds when it was first saved
    update_time: float  # Unix seconds when it was last saved
    ends: tuple[int, int]
    until: float | None = None  # Unix seconds when it ended; None while it holds


@dataclass(frozen=True, slots=True)
class EntityPath:
    """A path between two entities through a third."""

    through: str
    first: tuple[Relationship, ...]  # relationships between the first and the third
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
