"""Data classes of directories, their records and items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    # fields with running text to search for topics, in the order they are shown
    texts: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    # fields with lists of things a record made or received, such as "publications"
    items: tuple[str, ...] = ()
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
