"""What a directory answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from storage.models import IndexStatus
from storage.people.models import How

Kind = Literal["name", "topic"]
"""What a query asks for."""

Match = Literal["exact", "partial", "fuzzy", "none"]
"""What it took to find a group: the same but for case and accents; its words; typos."""


@dataclass(frozen=True, slots=True)
class Added:
    """What an import did, in records.

    Attributes:
        added: New ones.
        replaced: Ones that were stored otherwise.
        unchanged: Ones that were stored just so.
        removed: Ones that were stored and are no more, where that was asked for.
        merged: Names that came more than once as the same record; what each said is united.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    merged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record as it is stored.

    Attributes:
        id: Of its context.
        key: What tells it apart for ever.
        name: Its name, as it is written.
        aliases: Further names that it is known by.
        groups: Its values of each group field, and of each field with further ones.
        texts: Its running texts, by field.
        facts: What else is known, by field.
        link: Its address on the web; empty where there is none.
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
    """Why a record was found.

    Attributes:
        field: The field that says it: the name's, a text's, or that of a list of items; empty where
            it is what the record tells of itself in short.
        text: What it says, whole as it was indexed: a name, a passage, an item as it is cited.
        score: How well it fits, 0 to 1.
        title: Of an item; empty where it is not known apart.
        year: Of an item; None where it is not known.
    """

    field: str
    text: str
    score: float
    title: str = ""
    year: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecord:
    """A record that was found.

    Attributes:
        entry: The record.
        score: How well it fits, 0 to 1; comparable within one answer.
        how: What it took to find its name; None where it was found by what it says.
        snippets: Why it was found, best first.
    """

    entry: Entry
    score: float
    how: How | None
    snippets: tuple[Snippet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The records found for a query.

    Attributes:
        kind: What the query was taken for.
        reason: Why, in a few words; empty where it was said.
        records: Best first.
        status: How much of what is stored could be found by meaning.
        nearest: Where nobody has the name, the names that come nearest, the nearest first.
    """

    kind: Kind
    reason: str
    records: tuple[FoundRecord, ...]
    status: IndexStatus
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A record that an item belongs to.

    Attributes:
        key: What tells it apart for ever.
        name: Its name.
        link: Its address on the web; empty where there is none.
    """

    key: str
    name: str
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItem:
    """An item that was found.

    Attributes:
        id: Of its context.
        text: As it is cited.
        title: Its title; empty where it is not known apart.
        year: Its year; None where it is not known.
        details: What else is known of it, by name.
        owners: The records that it belongs to, by name.
        score: How well it fits, 0 to 1; comparable within one answer.
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
        status: How much of what is stored could be found by meaning.
    """

    items: tuple[FoundItem, ...]
    status: IndexStatus


@dataclass(frozen=True, slots=True)
class GroupSize:
    """A group and how many are in it.

    Attributes:
        value: As most of its members write it.
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
        match: What it took to find the group.
        values: The groups that were taken, the likeliest first; several where a part of a name
            fits several.
        members: Those of the page: the groups' own by name, then those that are associated.
        total: How many there are on all pages.
        nearest: Where nothing was found, the groups whose names come nearest, the nearest first.
    """

    match: Match
    values: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    total: int = 0
    nearest: tuple[str, ...] = ()
