"""Lists of a directory: its groups and their members, and the items of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import FiniteFloat

from storage.directory.models import Directory
from tools.answers.directory import DirectoryEntry, counted, in_words
from tools.answers.hits import Coverage
from tools.core.result import OmitNone, ToolModel

if TYPE_CHECKING:  # loaded on first use
    from storage.directory.models import FoundItem, FoundItems, GroupSize, Members


class ListedGroup(ToolModel):
    """A group, such as a department, and its size.

    Attributes:
        value: Its name.
        count: Records in it.
        associated: Other records that are only associated with it.
    """

    value: str
    count: int
    associated: int

    def to_text(self) -> str:
        """Formats it as one line."""
        more = f", and {self.associated} associated" if self.associated else ""
        return f"- {self.value}: {self.count}{more}"


class GroupMember(ToolModel):
    """A record in a group.

    Attributes:
        entry: The record.
        associated: Whether it is only associated with the group.
    """

    entry: DirectoryEntry
    associated: bool


class FilteredDirectory(ToolModel):
    """The members of a group, or the list of groups.

    Attributes:
        directory: The directory.
        noun: What a record is called.
        field: The group field.
        match: How the group was matched: "exact" except for case and accents, "partial" by its
            words, "fuzzy" with typos or word beginnings; "list" if the groups themselves were
            requested.
        values: The matched groups, likeliest first.
        members: The groups' own members by name, then associated ones.
        groups: For a list, the groups by name.
        total: Members or groups on all pages.
        offset: How many were skipped.
        next_offset: Offset of the next page; absent on the last.
    """

    directory: str
    noun: str
    field: str
    match: Literal["exact", "partial", "fuzzy", "list"]
    values: list[str]
    members: list[GroupMember]
    groups: list[ListedGroup]
    total: int
    offset: int
    next_offset: OmitNone[int]

    @classmethod
    def of_groups(
        cls, directory: Directory, field: str, sizes: list[GroupSize], page: tuple[int, int]
    ) -> FilteredDirectory:
        """Builds a page (limit, offset) of the groups of a field."""
        limit, offset = page
        return cls(
            directory=directory.name,
            noun=directory.noun,
            field=field,
            match="list",
            values=[],
            members=[],
            groups=list(map(ListedGroup.from_attributes, sizes[offset : offset + limit])),
            total=len(sizes),
            offset=offset,
            next_offset=_next(offset, limit, len(sizes)),
        )

    @classmethod
    def of(
        cls, directory: Directory, field: str, found: Members, page: tuple[int, int]
    ) -> FilteredDirectory:
        """Builds a page (limit, offset) of the members of a matched group."""
        limit, offset = page
        return cls(
            directory=directory.name,
            noun=directory.noun,
            field=field,
            match="list" if found.match == "none" else found.match,
            values=list(found.values),
            members=[
                GroupMember.from_attributes(each, entry=DirectoryEntry.of(directory, each.entry))
                for each in found.members
            ],
            groups=[],
            total=found.total,
            offset=offset,
            next_offset=_next(offset, limit, found.total),
        )

    def to_text(self) -> str:
        """Formats the matched groups, then one line per member or group."""
        shown = len(self.members) + len(self.groups)
        page = f", {self.offset + 1} to {self.offset + shown}" if shown < self.total else ""
        page = page if shown or not self.total else f", none from {self.offset + 1} on"
        more = "" if self.next_offset is None else f"More with offset={self.next_offset}."
        if self.match == "list":
            head = f"{counted(self.total, in_words(self.field))}{page}"
            return "\n".join(filter(None, [head, *(each.to_text() for each in self.groups), more]))
        named = ", ".join(self.values)
        count = counted(self.total, self.noun)
        head = f"{in_words(self.field)}: {named} ({self.match} match), {count}{page}"
        lines = (f"- {_member_line(each, self.field)}" for each in self.members)
        return "\n".join(filter(None, [head, *lines, more]))


def _member_line(member: GroupMember, field: str) -> str:
    mark = " (associated)" if member.associated else ""
    told = member.entry.describe(without="" if member.associated else field)
    told = ". ".join(filter(None, (told, member.entry.link)))
    return f"{member.entry.name}{mark}" + (f". {told}" if told else "")


def _next(offset: int, limit: int, total: int) -> int | None:
    return offset + limit if offset + limit < total else None


Asked = tuple[str, int | None]  # the topic, which may be empty, and the year


class ItemOwner(ToolModel):
    """A record that an item belongs to.

    Attributes:
        name: Its name.
        link: Its web address; may be empty.
    """

    name: str
    link: str


class ListedItem(ToolModel):
    """A product or achievement of records, such as a publication.

    Attributes:
        text: Its citation.
        title: Its title; empty if not known separately.
        year: Its year; absent if unknown.
        details: Other details, by name.
        owners: The records it belongs to, by name.
        score: How well it matches, 0 to 1; comparable within one answer.
    """

    text: str
    title: str
    year: OmitNone[int]
    details: dict[str, str]
    owners: list[ItemOwner]
    score: FiniteFloat

    @classmethod
    def of(cls, item: FoundItem) -> ListedItem:
        """Converts an item; rounds the score to four digits."""
        owners = list(map(ItemOwner.from_attributes, item.owners))
        return cls.from_attributes(item, owners=owners, score=round(item.score, 4))

    def to_text(self) -> str:
        """Formats it as one line."""
        year = "" if self.year is None or str(self.year) in self.text else f"{self.year}. "
        owners = ", ".join(each.name for each in self.owners)
        return f"{year}{self.text} ({owners})"


class ListedItems(ToolModel):
    """The matching items.

    Attributes:
        directory: The directory.
        items: The field of the list, such as "publications".
        topic: The requested topic; empty for all items of a year.
        year: The requested year; absent for any.
        found: Best first; newest first without a topic.
        total: Number of items of the year; absent if a topic was given.
        coverage: How complete the search was.
    """

    directory: str
    items: str
    topic: str
    year: OmitNone[int]
    found: list[ListedItem]
    total: OmitNone[int]
    coverage: Coverage

    @classmethod
    def of(
        cls, directory: Directory, items: str, asked: Asked, found: FoundItems, total: int | None
    ) -> ListedItems:
        """Converts a search result."""
        topic, year = asked
        return cls(
            directory=directory.name,
            items=items,
            topic=topic,
            year=year,
            found=[ListedItem.of(each) for each in found.items],
            total=total,
            coverage=Coverage.of(found.status),
        )

    def to_text(self) -> str:
        """Formats a block for each item."""
        of_year = "" if self.year is None else f" of {self.year}"
        about = f" about {self.topic!r}" if self.topic else ""
        count = f"{len(self.found) or 'none'}"
        more = ""
        if self.total is not None and self.total > len(self.found):
            count += f" of {self.total}"
            more = " Ask with a topic, or a larger top_k, for the others."
        head = f"{in_words(self.items).capitalize()}{of_year}{about}: {count}.{more}"
        blocks = [f"[{rank}] {each.to_text()}" for rank, each in enumerate(self.found, start=1)]
        return "\n".join([f"{head} {self.coverage.to_text()}".rstrip(), *blocks])
