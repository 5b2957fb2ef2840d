"""What tools on the items of a directory answer, such as publications and whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, FiniteFloat

from storage.directory.models import Directory
from tools.answers.directory import in_words
from tools.answers.retrieved import Coverage

if TYPE_CHECKING:  # loaded on first use
    from storage.directory.results import FoundItem, FoundItems

__all__ = ["Asked", "ItemOwner", "ListedItem", "ListedItems"]

Asked = tuple[str, int | None]
"""The topic, or an empty text, and the year."""


class ItemOwner(BaseModel):
    """A record that an item belongs to.

    Attributes:
        name: Its name.
        link: Its address on the web; empty where there is none.
    """

    name: str
    link: str


class ListedItem(BaseModel):
    """Something that records have made or got, such as a publication.

    Attributes:
        text: As it is cited.
        title: Its title; empty where it is not known apart.
        year: Its year; absent where it is not known.
        details: What else is known of it, by name.
        owners: The records that it belongs to, by name.
        score: How well it fits, 0 to 1; comparable within one answer.
    """

    text: str
    title: str
    year: int | None
    details: dict[str, str]
    owners: list[ItemOwner]
    score: FiniteFloat

    @classmethod
    def of(cls, item: FoundItem) -> ListedItem:
        """The item as a tool answers it; the score to four digits."""
        return cls(
            text=item.text,
            title=item.title,
            year=item.year,
            details=dict(item.details),
            owners=[ItemOwner(name=each.name, link=each.link) for each in item.owners],
            score=round(item.score, 4),
        )


class ListedItems(BaseModel):
    """The items that fit.

    Attributes:
        directory: Where.
        items: The field of the list, such as "publications".
        topic: What they are about; empty where all of a year were asked for.
        year: Their year; absent where any fits.
        found: Best first; without a topic the newest.
        total: How many there are of the year; absent where a topic was asked for.
        coverage: How complete the search was.
    """

    directory: str
    items: str
    topic: str
    year: int | None
    found: list[ListedItem]
    total: int | None
    coverage: Coverage

    @classmethod
    def of(
        cls, directory: Directory, items: str, asked: Asked, found: FoundItems, total: int | None
    ) -> ListedItems:
        """What was found, as a tool answers it."""
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
        """A block for each item."""
        of_year = "" if self.year is None else f" of {self.year}"
        about = f" about {self.topic!r}" if self.topic else ""
        count = f"{len(self.found) or 'none'}"
        more = ""
        if self.total is not None and self.total > len(self.found):
            count += f" of {self.total}"
            more = " Ask with a topic, or a larger top_k, for the others."
        head = f"{in_words(self.items).capitalize()}{of_year}{about}: {count}.{more}"
        blocks = [f"[{rank}] {_item_line(each)}" for rank, each in enumerate(self.found, start=1)]
        return "\n".join([f"{head} {self.coverage.to_text()}".rstrip(), *blocks])


def _item_line(item: ListedItem) -> str:
    year = "" if item.year is None or str(item.year) in item.text else f"{item.year}. "
    owners = ", ".join(each.name for each in item.owners)
    return f"{year}{item.text} ({owners})"
