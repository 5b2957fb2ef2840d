"""Data classes of directories, their records and items, and of what searches return."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from storage.models import IndexStatus
from storage.people.models import How

_NAME_SIGNS = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """Maps the fields of a file to the records of a directory."""

    name: str  # its name, `[a-z0-9_-]{1,64}`; also the raw_type of its records
    noun: str  # what one record is called, such as "researcher"
    name_field: str = "name"
    description: str = ""
    key: str = ""  # the field that identifies a record permanently; empty means the folded name
    # fields by which records are grouped, such as "department", each with the fields of further
    # values that a record is only associated with
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: tuple[str, ...] = ()  # fields with running text, in the order they are shown
    facts: tuple[str, ...] = ()
    items: tuple[str, ...] = ()  # fields with lists of things, such as "publications"
    link: str = ""  # the field with the record's URL; empty means none
    aliases: str = ""  # the field with further names of a record; empty means none

    def items_type(self, items: str) -> str:
        """Returns the raw_type of the contexts of one of its lists of items."""
        return f"{self.name}.{items}"

    @property
    def raw_types(self) -> tuple[str, ...]:
        """The raw_types of its records and of all their items."""
        return self.name, *map(self.items_type, self.items)

    @property
    def group_fields(self) -> tuple[str, ...]:
        """The group fields, each followed by its fields of associated values."""
        return tuple(field for own, more in self.groups.items() for field in (own, *more))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something a record made or received, such as a publication."""

    text: str
    title: str = ""  # its title; empty if not known separately
    year: int | None = None  # its year; None if unknown
    details: Mapping[str, str] = field(default_factory=dict)  # its other values, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A person or thing."""

    key: str  # identifies it permanently
    name: str
    aliases: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # the running texts, by field
    facts: Mapping[str, str] = field(default_factory=dict)  # other values, by field
    items: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)  # its items, by field
    link: str = ""  # its URL; empty means none


RESEARCHERS = Directory(
    name="researchers",
    noun="researcher",
    description="Researchers with their departments, programs, interests and publications",
    key="profile_url",
    groups={"department": ("associated_departments",), "program": ("associated_programs",)},
    texts=("overview", "interests"),
    facts=("degrees", "title"),
    items=("publications", "grants"),
    link="profile_url",
    aliases="aliases",
)
"""The built-in directory, with the fields of researchers' profiles."""


def field_name(written: str) -> str:
    """Normalizes a field name for comparison: folds case, and unifies blanks and hyphens."""
    return _NAME_SIGNS.sub("_", written.strip().casefold())


Kind = Literal["name", "topic"]  # how a query is classified

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
class Entry(Record):
    """A stored record, without its items."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """The reason that a record was found."""

    field: str  # name, text or list of items that matched; empty: the short description
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
    nearest: tuple[str, ...] = ()  # if no record has the name: nearest names


@dataclass(frozen=True, slots=True)
class Listed:
    """A record in a roster."""

    seq: int
    key: str  # identifies it permanently
    name: str
    aliases: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]
    link: str  # its URL; empty if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItem(Item):
    """A found item."""

    id: str
    owners: tuple[Listed, ...]  # the records it belongs to, by name
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
    values: tuple[str, ...] = ()  # the matching groups, likeliest first
    members: tuple[Member, ...] = ()  # own members by name, then associated ones
    total: int = 0
    nearest: tuple[str, ...] = ()  # if no group matched: nearest names
