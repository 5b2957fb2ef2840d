"""Directories: imports, lists and finds the people or things of one identity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from storage.contexts.ingestion import OnProgress
from storage.database import View
from storage.directory.classify import classify, kernel_of, name_in
from storage.directory.fields import united
from storage.directory.models import (
    Added,
    Directory,
    Found,
    FoundItems,
    GroupSize,
    Member,
    Members,
    Record,
)
from storage.directory.roster import Roster
from storage.directory.searching import Searches, load_entries
from storage.directory.writing import Batch, remove_records, stored_keys
from storage.errors import InvalidSourceError
from storage.models import Identity
from storage.stores import Stores

_T = TypeVar("_T")

BATCH = 200  # records written in one transaction; other writers wait for it


class Directories:
    """One identity's directories; its methods block, so call them in a worker thread.

    A directory is a mapping (`storage.directory.models.Directory`); records stored under its name
    are found with it. It need not be created first, and an empty directory finds nothing.
    """

    def __init__(self, identity: Identity, library: Stores) -> None:
        self._identity = identity
        self._library = library
        self._database = library.database

    def add(
        self,
        directory: Directory,
        records: Iterable[Record],
        *,
        prune: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Added:
        """Stores records with their items; unchanged records are left alone.

        A changed record is replaced with its items in one transaction, so that no search sees a
        part of it. All records are read before the first is written, some hundred per transaction.
        If the disk fails midway, written records stay, and repeating the import continues it. With
        `prune`, stored records that are not among these are removed. `on_progress` is called after
        each transaction with the number of records done, and of all.
        """
        every, merged = united(records)
        added = replaced = removed = done = 0
        try:
            for some in _batches(every):
                batch = Batch(directory, some)
                with self._database.read() as connection:
                    is_changed = batch.prepare(View(connection, self._identity))
                if is_changed:
                    with self._database.write() as connection:
                        counts = batch.write(View(connection, self._identity))
                    added, replaced = added + counts[0], replaced + counts[1]
                done += len(some)
                if on_progress is not None:
                    on_progress(done, len(every))
            if prune:
                removed = self._remove(directory, keep=every)
        finally:
            self._library.indexer.notify()
        unchanged = len(every) - added - replaced
        return Added(added, replaced, unchanged, removed, tuple(merged))

    def remove(self, directory: Directory) -> int:
        """Removes all records of a directory with their items; returns the number of records."""
        try:
            return self._remove(directory, keep={})
        finally:
            self._library.indexer.notify()

    def count(self, directory: Directory) -> int:
        """Returns the number of stored records."""
        return len(self._roster(directory).listed)

    def search_names(self, directory: Directory, name: str, top_k: int) -> Found:
        """Returns the records that a name matches, best first; otherwise text matches.

        Case, accents, titles, the order of first and last name, initials and single typos do not
        matter, nor does a question around the name, such as "who is".
        """
        roster = self._roster(directory)
        searches = self._searches(directory, roster)
        asked = name if roster.names.knows(name) else name_in(name)
        matches = roster.names.find(asked, top_k) or roster.names.find(kernel_of(name), top_k)
        return (
            searches.by_name(matches, "") if matches else searches.by_text(asked, top_k, "name", "")
        )

    def search_topics(self, directory: Directory, topic: str, top_k: int) -> Found:
        """Returns the records whose texts or items match a topic, best first."""
        return self._searches(directory).by_text(topic, top_k, "topic", "")

    def search(self, directory: Directory, query: str, top_k: int) -> Found:
        """Returns the records for a query, which is classified as a name or a topic."""
        roster = self._roster(directory)
        searches = self._searches(directory, roster)
        verdict = classify(query, roster.names, searches.is_said)
        if verdict.kind == "name":
            matches = roster.names.find(verdict.asked, top_k)
            if matches:
                return searches.by_name(matches, verdict.reason)
        return searches.by_text(verdict.asked, top_k, verdict.kind, verdict.reason)

    def search_items(  # noqa: PLR0913  # the filters of a search
        self,
        directory: Directory,
        items: str,
        topic: str,
        top_k: int,
        *,
        since: int | None = None,
        until: int | None = None,
    ) -> FoundItems:
        """Returns the items that match a topic, best first, each with the records it belongs to.

        An empty topic lists the newest. With a first or last year, items without a year do not
        match.
        """
        _check(items, directory.items, f"list of items in {directory.name!r}")
        return self._searches(directory).items(items, topic, top_k, since, until)

    def groups(self, directory: Directory, field: str) -> list[GroupSize]:
        """Returns the groups of a field by name, with their sizes."""
        _check(field, directory.groups, f"group field of {directory.name!r}")
        return self._roster(directory).groups(field).sizes()

    def members(
        self, directory: Directory, field: str, value: str, limit: int, offset: int = 0
    ) -> Members:
        """Returns the records of a group.

        The first kind of match that finds a group decides: the name regardless of case and accents,
        then all words of one in the other, then typos.
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
        return self._library.rosters.of(self._identity, directory)

    def _searches(self, directory: Directory, roster: Roster | None = None) -> Searches:
        return Searches(self._identity, self._library, directory, roster or self._roster(directory))

    def _remove(self, directory: Directory, keep: Mapping[str, Record]) -> int:
        with self._database.read() as connection:
            keys = stored_keys(View(connection, self._identity), directory)
        gone = dict.fromkeys(key for key in keys if key not in keep)
        removed = 0
        for some in _batches(gone):
            with self._database.write() as connection:
                removed += remove_records(View(connection, self._identity), directory, some)
        return removed


def _batches(values: Mapping[str, _T]) -> Iterator[dict[str, _T]]:
    each = iter(values.items())
    while some := dict(islice(each, BATCH)):
        yield some


def _check(field: str, known: Iterable[str], what: str) -> None:
    if field not in known:
        has = tuple(known)
        raise InvalidSourceError(
            f"{field!r} is not a {what}; it has {', '.join(has) or 'none'}.",
            candidates=has,
            suggestions=("Use one of these." if has else "Ask another directory.",),
        )
