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
    """The outcome of an import, in records.

    Attributes:
        added: New records.
        replaced: Stored records that changed.
        unchanged: Stored records that did not change.
        removed: Stored records that were pruned on request.
        merged: Names of records that came more than once and were merged.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    merged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A stored record.

    Attributes:
        id: The id of its context.
        key: Identifies it permanently.
        name: Its name as written.
        aliases: Further names.
        groups: The values of each group field, and of each field of associated values.
        texts: Its running texts, by field.
        facts: Other values, by field.
        link: Its URL; empty if there is none.
    """

    id: str
    key: str
    name: str
    aliases: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """The reason that a record was found.

    Attributes:
        field: The field that matched: of the name, a text, or a list of items; empty for the
            short description.
        text: The whole indexed text: a name, a passage or a citation.
        score: How well it matches, 0 to 1.
        title: An item's title; empty if not known separately.
        year: An item's year; None if unknown.
    """

    field: str
    text: str
    score: float
    title: str = ""
    year: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecord:
    """A found record.

    Attributes:
        entry: The record.
        score: How well it matches, 0 to 1; comparable within one answer.
        how: How its name matched; None if its content matched instead.
        snippets: The reasons it was found, best first.
    """

    entry: Entry
    score: float
    how: How | None
    snippets: tuple[Snippet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The records found for a query.

    Attributes:
        kind: How the query was classified.
        reason: Why, in a few words; empty if the caller chose.
        records: Best first.
        status: How much of the stored data semantic search covers.
        nearest: If no record has the name, the names nearest to it, nearest first.
    """

    kind: Kind
    reason: str
    records: tuple[FoundRecord, ...]
    status: IndexStatus
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A record that owns an item.

    Attributes:
        key: Identifies it permanently.
        name: Its name.
        link: Its URL; empty if there is none.
    """

    key: str
    name: str
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItem:
    """A found item.

    Attributes:
        id: The id of its context.
        text: Its citation.
        title: Its title; empty if not known separately.
        year: Its year; None if unknown.
        details: Its other values, by name.
        owners: The records it belongs to, by name.
        score: How well it matches, 0 to 1; comparable within one answer.
    """

    id: str
    text: str
    title: str
    year: int | None
    details: Mapping[str, str]
    owners: tuple[Owner, ...]
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """The items found for a topic.

    Attributes:
        items: Best first.
        status: How much of the stored data semantic search covers.
    """

    items: tuple[FoundItem, ...]
    status: IndexStatus


@dataclass(frozen=True, slots=True)
class GroupSize:
    """A group and its size.

    Attributes:
        value: The most frequent spelling.
        count: Records that belong to it.
        associated: Further records that are only associated with it.
    """

    value: str
    count: int
    associated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A record in a group.

    Attributes:
        entry: The record.
        associated: Whether it is only associated with the group.
    """

    entry: Entry
    associated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """A page of a group's members.

    Attributes:
        match: How the group matched.
        values: The matching groups, likeliest first; several if a part of a name matches several.
        members: The page: the groups' own members by name, then the associated ones.
        total: The number of members on all pages.
        nearest: If no group matched, those with the nearest names, nearest first.
    """

    match: Match
    values: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    total: int = 0
    nearest: tuple[str, ...] = ()
