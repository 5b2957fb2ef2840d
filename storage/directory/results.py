"""Data classes of what directories return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from storage.models import IndexStatus
from storage.people.models import How

Kind = Literal["name", "topic"]
"""How a query is classified."""

Match = Literal["exact", "partial", "fuzzy", "none"]
"""How a group matched: the same but for case and accents; by its words; but for typos."""


@dataclass(frozen=True, slots=True)
class Added:
    """The outcome of an import, in records."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    merged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A stored record."""

    id: str
    key: str  # identifies it permanently
    name: str
    aliases: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # its running texts, by field
    facts: Mapping[str, str] = field(default_factory=dict)  # other values, by field
    link: str = ""  # its URL; empty if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """The reason that a record was found."""

    # the field that matched: of the name, a text, or a list of items; empty for the short
    # description
    field: str
    text: str  # the whole indexed text: a name, a passage or a citation
    score: float  # how well it matches, 0 to 1
    title: str = ""  # an item's title; empty if not known separately
    year: int | None = None  # an item's year; None if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecord:
    """A found record."""

    entry: Entry
    score: float  # how well it matches, 0 to 1; comparable within one answer
    how: How | None  # how its name matched; None if its content matched instead
    snippets: tuple[Snippet, ...]  # the reasons it was found, best first


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The records found for a query."""

    kind: Kind
    reason: str  # why, in a few words; empty if the caller chose
    records: tuple[FoundRecord, ...]  # best first
    status: IndexStatus
    # if no record has the name, the names nearest to it, nearest first
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A record that owns an item."""

    key: str  # identifies it permanently
    name: str
    link: str = ""  # its URL; empty if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItem:
    """A found item."""

    id: str
    text: str
    title: str  # its title; empty if not known separately
    year: int | None  # its year; None if unknown
    details: Mapping[str, str]  # its other values, by name
    owners: tuple[Owner, ...]  # the records it belongs to, by name
    score: float  # how well it matches, 0 to 1; comparable within one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """The items found for a topic."""

    items: tuple[FoundItem, ...]  # best first
    status: IndexStatus


@dataclass(frozen=True, slots=True)
class GroupSize:
    """A group and its size."""

    value: str
    count: int
    associated: int  # further records that are only associated with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A record in a group."""

    entry: Entry
    associated: bool  # whether it is only associated with the group


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """A page of a group's members."""

    match: Match
    # the matching groups, likeliest first; several if a part of a name matches several
    values: tuple[str, ...] = ()
    # the page: the groups' own members by name, then the associated ones
    members: tuple[Member, ...] = ()
    total: int = 0
    # if no group matched, those with the nearest names, nearest first
    nearest: tuple[str, ...] = ()
