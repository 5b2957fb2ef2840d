"""Directories: people or things of one identity, imported, listed and found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from storage.contexts.ingestion import OnProgress
from storage.database import Database
from storage.directory.classify import classify
from storage.directory.fields import united
from storage.directory.loading import load_entries
from storage.directory.models import Directory, Record
from storage.directory.results import Added, Found, FoundItems, GroupSize, Member, Members
from storage.directory.roster import Roster, Rosters
from storage.directory.searching import Searches
from storage.directory.writing import Batch, remove_records, stored_keys
from storage.errors import InvalidSourceError
from storage.index.indexer import Indexer
from storage.models import Identity
from storage.people.questions import kernel_of, name_in
from storage.retrieval.search import SearchEngine

_T = TypeVar("_T")

BATCH = 200
"""Records written in one transaction, for which other writers wait."""


class Directories:
    """One identity's directories; its calls block, so run them in a worker thread.

    A directory is a mapping (`storage.directory.models.Directory`); what is stored under its name
    is found with it. Nothing has to be made first, and an empty directory finds nothing.

    Args:
        identity: Whose.
        database: The record.
        engine: The search engine.
        indexer: The background worker.
        rosters: Who is in each directory.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        database: Database,
        engine: SearchEngine,
        indexer: Indexer,
        rosters: Rosters,
    ) -> None:
        self._identity = identity
        self._database = database
        self._engine = engine
        self._indexer = indexer
        self._rosters = rosters

    def add(
        self,
        directory: Directory,
        records: Iterable[Record],
        *,
        prune: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Added:
        """Stores records with their items; those that are stored just so are left as they are.

        A record that is stored otherwise is replaced with its items in one transaction, so that no
        search sees half of it. All are read before the first is written, some hundred at once:
        where the disk refuses in the middle, what was written stays, and the same import goes on.

        Args:
            directory: What they are records of.
            records: As `storage.directory.reading.read_records` reads them.
            prune: Whether records that are stored and not among these are removed.
            on_progress: Told after each transaction how many records are done, and of how many.
        """
        every, merged = united(records)
        added = replaced = removed = done = 0
        try:
            for some in _batches(every):
                batch = Batch(self._identity, directory, some)
                with self._database.read() as connection:
                    is_changed = batch.prepare(connection)
                if is_changed:
                    with self._database.write() as connection:
                        counts = batch.write(connection)
                    added, replaced = added + counts[0], replaced + counts[1]
                done += len(some)
                if on_progress is not None:
                    on_progress(done, len(every))
            if prune:
                removed = self._remove(directory, keep=every)
        finally:
            self._indexer.notify()
        unchanged = len(every) - added - replaced
        return Added(added, replaced, unchanged, removed, tuple(merged))

    def remove(self, directory: Directory) -> int:
        """Removes all records of a directory with their items, and says how many records went."""
        try:
            return self._remove(directory, keep={})
        finally:
            self._indexer.notify()

    def count(self, directory: Directory) -> int:
        """How many records are stored."""
        return len(self._roster(directory).listed)

    def search_names(self, directory: Directory, name: str, top_k: int) -> Found:
        """The records that a name means, best first; without such, those that say it best.

        Case, accents, titles, the order of first and last name, initials and a typo do not matter,
        nor a question around the name, such as "who is".
        """
        roster = self._roster(directory)
        searches = self._searches(directory, roster)
        asked = name if roster.names.knows(name) else name_in(name)
        matches = roster.names.find(asked, top_k) or roster.names.find(kernel_of(name), top_k)
        return searches.named(matches, "") if matches else searches.said(asked, top_k, "name", "")

    def search_topics(self, directory: Directory, topic: str, top_k: int) -> Found:
        """The records whose texts or items are about a topic, best first."""
        return self._searches(directory).said(topic, top_k, "topic", "")

    def search(self, directory: Directory, query: str, top_k: int) -> Found:
        """The records for a query that may be a name or a topic; the answer says which it took."""
        roster = self._roster(directory)
        searches = self._searches(directory, roster)
        verdict = classify(query, roster.names, searches.is_said)
        if verdict.kind == "name":
            matches = roster.names.find(verdict.asked, top_k)
            if matches:
                return searches.named(matches, verdict.reason)
        return searches.said(verdict.asked, top_k, verdict.kind, verdict.reason)

    def search_items(  # noqa: PLR0913  # what narrows a search
        self,
        directory: Directory,
        items: str,
        topic: str,
        top_k: int,
        *,
        since: int | None = None,
        until: int | None = None,
    ) -> FoundItems:
        """The items that are about a topic, best first, each with the records it belongs to.

        Args:
            directory: Where.
            items: The field of the list, such as "publications".
            topic: What they are about; empty lists the newest.
            top_k: How many at most.
            since: The first year that fits; None leaves this end open.
            until: The last year that fits; None leaves this end open. With either, items without a
                year do not fit.
        """
        _check(items, directory.items, f"list of items in {directory.name!r}")
        return self._searches(directory).items(items, topic, top_k, since, until)

    def groups(self, directory: Directory, field: str) -> list[GroupSize]:
        """The groups of a field, by name, with how many are in each."""
        _check(field, directory.groups, f"group field of {directory.name!r}")
        return self._roster(directory).groups(field).sizes()

    def members(
        self, directory: Directory, field: str, value: str, limit: int, offset: int = 0
    ) -> Members:
        """The records of a group.

        The first way that finds a group decides: its name in any case and accents, then all the
        words of one in the other, then typos.
        """
        _check(field, directory.groups, f"group field of {directory.name!r}")
        roster = self._roster(directory)
        groups = roster.groups(field)
        match, values = groups.find(value)
        if match == "none":
            return Members(match=match, nearest=tuple(groups.nearest(value)))
        own, associated = groups.members(values)
        page = [*((place, False) for place in own), *((place, True) for place in associated)]
        shown = [(roster.listed[place].seq, is_far) for place, is_far in page[offset:][:limit]]
        with self._database.read() as connection:
            entries = load_entries(connection, directory, [seq for seq, _ in shown])
        return Members(
            match=match,
            values=tuple(map(groups.value, values)),
            members=tuple(
                Member(entry=entries[seq], associated=is_far)
                for seq, is_far in shown
                if seq in entries
            ),
            total=len(page),
        )

    def _roster(self, directory: Directory) -> Roster:
        return self._rosters.of(self._identity, directory)

    def _searches(self, directory: Directory, roster: Roster | None = None) -> Searches:
        return Searches(
            self._identity,
            directory=directory,
            roster=roster or self._roster(directory),
            database=self._database,
            engine=self._engine,
            indexer=self._indexer,
        )

    def _remove(self, directory: Directory, keep: Mapping[str, Record]) -> int:
        """Removes the records that are not to be kept."""
        with self._database.read() as connection:
            keys = stored_keys(connection, self._identity, directory)
        gone = dict.fromkeys(key for key in keys if key not in keep)
        removed = 0
        for some in _batches(gone):
            with self._database.write() as connection:
                removed += remove_records(connection, self._identity, directory, some)
        return removed


def _batches(values: Mapping[str, _T]) -> Iterator[dict[str, _T]]:
    each = iter(values.items())
    while some := dict(islice(each, BATCH)):
        yield some


def _check(field: str, known: Iterable[str], what: str) -> None:
    if field not in known:
        has = tuple(known)
        raise InvalidSourceError(
            f"{field!r} is not a {what}; there is {', '.join(has) or 'none'}.",
            candidates=has,
            suggestions=("Name one of these." if has else "Ask another directory.",),
        )
