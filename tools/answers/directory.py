"""Results of directory tools: the matching records and the reason for each match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import FiniteFloat

from storage.directory.models import Directory
from tools.answers.hits import Coverage
from tools.core.result import OmitNone, ToolModel

if TYPE_CHECKING:  # loaded on first use
    from storage.directory.models import Entry, Found, FoundRecord

SNIPPETS = 3  # limit on the snippets per record for the model; the structured result has all
SNIPPET = 300  # limit on the characters of a snippet for the model


class DirectoryEntry(ToolModel):
    """A person or thing.

    Attributes:
        name: Its name.
        aliases: Other names.
        groups: The values of its group fields, such as departments, by field.
        facts: Other facts, by field.
        link: Its web address; may be empty.
    """

    name: str
    aliases: list[str]
    groups: dict[str, list[str]]
    facts: dict[str, str]
    link: str

    @classmethod
    def of(cls, directory: Directory, entry: Entry) -> DirectoryEntry:
        """Converts a record, with fields in the order of the directory."""
        facts = dict.fromkeys((*directory.facts, *entry.facts))
        return cls.from_attributes(
            entry,
            groups={field: values for field, values in entry.groups.items() if values},
            facts={field: entry.facts[field] for field in facts if entry.facts.get(field)},
        )

    def describe(self, without: str = "") -> str:
        """Formats aliases, facts and groups as one line, optionally without one group field."""
        also = {"also": ", ".join(self.aliases)}
        groups = {in_words(field): ", ".join(each) for field, each in self.groups.items()}
        groups.pop(in_words(without), None)
        facts = {in_words(field): fact for field, fact in self.facts.items()}
        known = {**also, **facts, **groups}
        return "; ".join(f"{field}: {value}" for field, value in known.items() if value)


class Snippet(ToolModel):
    """The reason for a match.

    Attributes:
        field: The matching field.
        text: Its text.
        year: Year of an item, such as a publication; absent if unknown.
        score: How well it matches, 0 to 1.
    """

    field: str
    text: str
    year: OmitNone[int]
    score: FiniteFloat

    def to_text(self) -> str:
        """Formats it as one line."""
        year = "" if self.year is None or str(self.year) in self.text else f" {self.year}"
        text = " ".join(self.text.split())
        if len(text) > SNIPPET:
            text = f"{text[:SNIPPET].rsplit(' ', 1)[0]} …"
        return f"- {in_words(self.field)}{year}: {text}"


class FoundEntry(ToolModel):
    """A record with the reason for the match.

    Attributes:
        entry: The record.
        how: How its name was matched, from the surest way to the least sure; "text" if its text
            matched instead.
        score: How well it matches, 0 to 1; comparable within one answer.
        snippets: Matching texts, best first; for a match by name, what the record is about.
    """

    entry: DirectoryEntry
    how: Literal["exact", "alias", "folded", "partial", "fuzzy", "text"]
    score: FiniteFloat
    snippets: list[Snippet]

    @classmethod
    def of(cls, directory: Directory, found: FoundRecord) -> FoundEntry:
        """Converts a match; rounds scores to four digits."""
        snippets = [
            Snippet(field=each.field, text=each.text, year=each.year, score=round(each.score, 4))
            for each in found.snippets
            if each.field
            and each.text not in {found.entry.name, *found.entry.aliases}  # shown anyway
        ]
        about = [
            Snippet(field=field, text=text, year=None, score=0.0)
            for field, text in found.entry.texts.items()
            if text
        ]
        return cls(
            entry=DirectoryEntry.of(directory, found.entry),
            how=found.how or "text",
            score=round(found.score, 4),
            snippets=snippets or about,
        )

    def to_text(self) -> str:
        """Formats a block: name and reason, facts, snippets, address."""
        lines = [f"{self.entry.name} ({self.how} {self.score:.2f})", self.entry.describe()]
        lines += [each.to_text() for each in self.snippets[:SNIPPETS]]
        return "\n".join(filter(None, [*lines, self.entry.link]))


class SearchedDirectory(ToolModel):
    """The matching records, best first.

    Attributes:
        directory: The directory.
        noun: What a record is called.
        taken_for: How the query was interpreted.
        reason: Why, if the search had to decide.
        records: Best first; may be empty.
        coverage: How complete the search was.
        nearest: Similar names, if no record has the name.
    """

    directory: str
    noun: str
    taken_for: Literal["name", "topic"]
    reason: str
    records: list[FoundEntry]
    coverage: Coverage
    nearest: list[str]

    @classmethod
    def of(cls, directory: Directory, found: Found) -> SearchedDirectory:
        """Converts a search result."""
        return cls(
            directory=directory.name,
            noun=directory.noun,
            taken_for=found.kind,
            reason=found.reason,
            records=[FoundEntry.of(directory, each) for each in found.records],
            coverage=Coverage.of(found.status),
            nearest=list(found.nearest),
        )

    def to_text(self) -> str:
        """Formats a block for each record."""
        why = f" ({self.reason})" if self.reason else ""
        count = counted(len(self.records), self.noun) if self.records else f"No {self.noun} fits"
        is_named = self.records and all(each.how != "text" for each in self.records)
        coverage = "" if is_named else self.coverage.to_text()  # names need no meaning
        nearest = f"The nearest names are {', '.join(self.nearest)}." if self.nearest else ""
        head = " ".join(filter(None, (f"{count}, by {self.taken_for}{why}.", nearest, coverage)))
        blocks = (f"[{rank}] {each.to_text()}" for rank, each in enumerate(self.records, start=1))
        return "\n\n".join([head, *blocks])


def counted(count: int, noun: str) -> str:
    """Formats a count with its noun."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x', 'z', 'ch', 'sh')) else 's'}"


def in_words(field: str) -> str:
    """Returns a field's name with spaces."""
    return field.replace("_", " ")
