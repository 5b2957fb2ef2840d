"""What tools on the groups of a directory answer: which there are, and who is in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from storage.directory.models import Directory
from tools.answers.directory import DirectoryEntry, counted, in_words

if TYPE_CHECKING:  # loaded on first use
    from storage.directory.results import GroupSize, Members

__all__ = ["FilteredDirectory", "GroupMember", "ListedGroup"]


class ListedGroup(BaseModel):
    """A group, such as a department, and how many are in it.

    Attributes:
        value: Its name.
        count: Records that belong to it.
        associated: Further records that are only associated with it.
    """

    value: str
    count: int
    associated: int

    def to_text(self) -> str:
        """One line."""
        more = f", and {self.associated} associated" if self.associated else ""
        return f"- {self.value}: {self.count}{more}"


class GroupMember(BaseModel):
    """A record in a group.

    Attributes:
        entry: The record.
        associated: Whether it is only associated with the group.
    """

    entry: DirectoryEntry
    associated: bool


class FilteredDirectory(BaseModel):
    """The members of a group, or the groups that there are.

    Attributes:
        directory: Where.
        noun: What one record is.
        field: The group field.
        match: What it took to find the group: "exact" but for case and accents, "partial" for its
            words, "fuzzy" for typos and the beginnings of words; "list" where the groups
            themselves were asked for.
        values: The groups that were taken, the likeliest first.
        members: The groups' own by name, then those that are associated.
        groups: For a list, the groups by name.
        total: How many members, or groups, there are on all pages.
        offset: How many of them were skipped.
        next_offset: The offset of the next page; absent on the last.
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
    next_offset: int | None

    @classmethod
    def listed(
        cls, directory: Directory, field: str, sizes: list[GroupSize], page: tuple[int, int]
    ) -> FilteredDirectory:
        """A page (limit, offset) of the groups of a field."""
        limit, offset = page
        return cls(
            directory=directory.name,
            noun=directory.noun,
            field=field,
            match="list",
            values=[],
            members=[],
            groups=[
                ListedGroup(value=each.value, count=each.count, associated=each.associated)
                for each in sizes[offset : offset + limit]
            ],
            total=len(sizes),
            offset=offset,
            next_offset=_next(offset, limit, len(sizes)),
        )

    @classmethod
    def of(
        cls, directory: Directory, field: str, found: Members, page: tuple[int, int]
    ) -> FilteredDirectory:
        """A page (limit, offset) of the members of a group that was found."""
        limit, offset = page
        return cls(
            directory=directory.name,
            noun=directory.noun,
            field=field,
            match="list" if found.match == "none" else found.match,
            values=list(found.values),
            members=[
                GroupMember(
                    entry=DirectoryEntry.of(directory, each.entry), associated=each.associated
                )
                for each in found.members
            ],
            groups=[],
            total=found.total,
            offset=offset,
            next_offset=_next(offset, limit, found.total),
        )

    def to_text(self) -> str:
        """What was matched, and a line for each member or group."""
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
    told = member.entry.told(without="" if member.associated else field)
    told = ". ".join(filter(None, (told, member.entry.link)))
    return f"{member.entry.name}{mark}" + (f". {told}" if told else "")


def _next(offset: int, limit: int, total: int) -> int | None:
    return offset + limit if offset + limit < total else None
