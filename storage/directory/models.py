"""What a directory is of, and who or what is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_NAME_SIGNS = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """How the fields of a file become the records of a directory.

    Attributes:
        name: What it is called, `[a-z0-9_-]{1,64}`; also the raw_type of its records.
        description: What is in it.
        noun: What one record is, for people, such as "researcher".
        key: The field that tells records apart for ever; empty means the folded name.
        name_field: The field with the name.
        groups: Fields by whose values records are grouped, such as "department": by each, the
            fields with further values that a record is associated with.
        texts: Fields with running text that topics are found in, in the order they are shown.
        facts: Fields that are shown with a record and kept as its metadata.
        items: Fields with lists of things that a record has made or got, such as "publications".
        link: The field with the record's address on the web; empty means none.
        aliases: The field with further names that a record is known by; empty means none.
    """

    name: str
    noun: str
    name_field: str = "name"
    description: str = ""
    key: str = ""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    link: str = ""
    aliases: str = ""

    def items_type(self, items: str) -> str:
        """The raw_type of the contexts that one of its lists of items becomes."""
        return f"{self.name}.{items}"

    @property
    def raw_types(self) -> tuple[str, ...]:
        """The raw_types of its records and of all their items."""
        return self.name, *map(self.items_type, self.items)

    @property
    def group_fields(self) -> tuple[str, ...]:
        """The group fields, each followed by those with further values."""
        return tuple(field for own, more in self.groups.items() for field in (own, *more))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that a record has made or got, such as a publication.

    Attributes:
        text: As it is cited.
        title: Its title; empty where it is not known apart.
        year: Its year; None where it is not known.
        details: What else is known of it, by name.
    """

    text: str
    title: str = ""
    year: int | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One person or thing.

    Attributes:
        key: What tells it apart for ever.
        name: Its name, as it is written.
        aliases: Further names that it is known by.
        groups: The values of each of the directory's group fields, and of each field with further
            ones that it is associated with.
        texts: The running texts, by field.
        facts: What else is known, by field.
        items: What it has made or got, by field.
        link: Its address on the web; empty means none.
    """

    key: str
    name: str
    aliases: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    items: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    link: str = ""


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
"""The directory that is always there, with the fields of researchers' profiles."""


def field_name(written: str) -> str:
    """The name of a field as it is compared: without case, blanks and hyphens."""
    return _NAME_SIGNS.sub("_", written.strip().casefold())
