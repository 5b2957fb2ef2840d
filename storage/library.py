"""The library, and the part of it that one identity sees."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from storage.errors import DocumentNotFoundError, StorageUnavailableError
from storage.memory.entries import OwnEntries
from storage.models import (
    Chunk,
    Context,
    ContextType,
    Identity,
    IndexStatus,
    NewContext,
    SearchFilter,
    SearchHit,
    SearchResult,
    Stored,
)
from storage.stores import Stores

if TYPE_CHECKING:  # loaded on first use
    from storage.agent.plans import Plans
    from storage.agent.todos import Todos
    from storage.contexts.ingestion import OnProgress, PreparedChunk
    from storage.directory.directories import Directories
    from storage.events.events import Events
    from storage.memory.memories import Memories
    from storage.people.people import People
    from storage.retrieval.ranking import UnifiedHit
    from storage.retrieval.routing import UnifiedQuery
    from storage.retrieval.unified import UnifiedResult

_Found = TypeVar("_Found", "SearchResult", "UnifiedResult")

FORGET_BATCH = 200
"""Contexts deleted per transaction: less than a second, during which other writers wait."""


class Library(Stores):
    """Everything that one data directory stores, by identity."""

    def shelf(self, identity: Identity, closes: Callable[[str], bool] | None = None) -> Shelf:
        """Returns one identity's view, without files whose reading rules deny."""
        return Shelf(identity, self, closes)


class Shelf:
    """One identity's view of the library; its methods block.

    Repositories are created on first use, because most calls need none. `closes` returns whether a
    rule denies reading a file's path; None denies nothing.
    """

    def __init__(
        self, identity: Identity, library: Stores, closes: Callable[[str], bool] | None = None
    ) -> None:
        self.identity = identity
        self._closes = closes
        self._library = library
        self.max_document_bytes = library.max_document_bytes

    @cached_property
    def people(self) -> People:
        """The profile, entities and relationships."""
        from storage.people.people import People

        return People(self._library.database, self.identity, self._library.indexer.notify)

    @cached_property
    def entries(self) -> OwnEntries:
        """The recorded calls and messages."""
        return OwnEntries(self._library.entries, self.identity)

    @cached_property
    def events(self) -> Events:
        """The events."""
        from storage.events.events import Events

        return Events(self.identity, self._library)

    @cached_property
    def memories(self) -> Memories:
        """The memories."""
        from storage.memory.memories import Memories

        return Memories(self.identity, self._library)

    @cached_property
    def directories(self) -> Directories:
        """The directories."""
        from storage.directory.directories import Directories

        return Directories(self.identity, self._library)

    @cached_property
    def plans(self) -> Plans:
        """The plans."""
        from storage.agent.plans import Plans

        return Plans(self.identity, self._library.database, self._library.indexer.notify)

    @cached_property
    def todos(self) -> Todos:
        """The to-do lists."""
        from storage.agent.todos import Todos

        return Todos(self.identity, self._library.database)

    def add(self, new: NewContext, on_progress: OnProgress | None = None) -> Stored:
        """Stores a context by the rules of its type, and queues it for embedding.

        A document replaces its earlier version, an event is appended, and knowledge is merged into
        near-duplicates. Keyword search finds it as soon as this returns, semantic search once it is
        embedded.
        """
        from storage.contexts.ingestion import is_same, normalized, prepare

        new = normalized(replace(new, one_of_many=new.one_of_many or self._library.importing))
        if new.context_type is ContextType.DOCUMENT:
            earlier = self._library.contexts.find_document(self.identity, new.raw_type, new.raw_id)
            if earlier is not None and is_same(earlier, new):
                return Stored(earlier, "unchanged")
        stored = self._store(new, prepare(new, on_progress))
        self._library.indexer.notify()
        return stored

    def get(self, context_id: str) -> tuple[Context, list[Chunk]]:
        """Returns a context and its chunks, unless a rule denies reading its file."""
        return self._check_readable(*self._library.contexts.get(self.identity, context_id))

    def get_document(self, raw_type: str, raw_id: str) -> tuple[Context, list[Chunk]]:
        """Returns a document and its chunks in order."""
        return self._check_readable(
            *self._library.contexts.get_document(self.identity, raw_type, raw_id)
        )

    def delete_document(self, raw_type: str, raw_id: str) -> int:
        """Deletes a document from every store and returns its number of chunks."""
        removed = self._library.contexts.delete_document(self.identity, raw_type, raw_id)
        self._library.indexer.notify()
        return removed

    def forget(self, context_ids: Sequence[str]) -> int:
        """Deletes contexts from every store and returns how many."""
        removed = self._library.contexts.delete(self.identity, context_ids)
        self._library.indexer.notify()
        return removed

    def forgettable(
        self, criteria: SearchFilter, limit: int
    ) -> tuple[dict[ContextType, int], list[tuple[Context, str]]]:
        """Counts what `forget_all` would delete by type, and returns the newest with openings."""
        self._library.store_waiting()
        criteria = _fold_names(criteria)
        newest = self._library.contexts.newest(self.identity, criteria, limit)
        openings = self._library.contexts.openings(newest)
        shown = [(context, openings.get(context.id, "")) for context in newest]
        return self._library.contexts.count_kinds(self.identity, criteria), shown

    def forget_all(self, criteria: SearchFilter) -> dict[ContextType, int]:
        """Deletes all contexts that match a filter, and returns how many of each type.

        Entities must match exactly, except for case and accents: similar names are not enough. It
        deletes in transactions of some hundred, so that no other writer waits long. Contexts added
        meanwhile stay. Events that wait to be stored are stored first, and deleted if they match.
        """
        self._library.store_waiting()
        criteria = _fold_names(criteria)
        last = self._library.contexts.last_seq(self.identity, criteria)
        gone: Counter[ContextType] = Counter()
        try:
            while kinds := self._library.contexts.delete_some(
                self.identity, criteria, last, FORGET_BATCH
            ):
                gone.update(kinds)
        except StorageUnavailableError as error:
            raise StorageUnavailableError(
                f"{error.message} {gone.total()} contexts were already deleted.",
                suggestions=error.suggestions,
            ) from error
        finally:
            self._library.indexer.notify()
        return dict(sorted(gone.items()))

    def left_naming(
        self, criteria: SearchFilter, limit: int
    ) -> tuple[int, list[tuple[Context, str]]]:
        """Finds what `forget_all` leaves although a text or another name mentions the same."""
        contexts, going = self._library.contexts, _fold_names(criteria)
        wide = self._with_all_names(criteria)
        count = contexts.count(self.identity, wide) - contexts.count(self.identity, going)
        left: list[Context] = []
        for offset in itertools.count(0, FORGET_BATCH):
            if len(left) >= min(count, limit):
                break
            page = contexts.newest(self.identity, wide, FORGET_BATCH, offset)
            ids = tuple(each.id for each in page)
            gone = contexts.newest(self.identity, replace(going, ids=ids), FORGET_BATCH)
            left += [each for each in page if each not in gone]
        openings = contexts.openings(left[:limit])
        return count, [(each, openings.get(each.id, "")) for each in left[:limit]]

    def contexts(self, criteria: SearchFilter, limit: int, offset: int = 0) -> list[Context]:
        """Returns contexts that match a filter, newest first; names in any spelling."""
        return self._library.contexts.newest(
            self.identity, self._resolve_names(criteria)[0], limit, offset
        )

    def count(self, criteria: SearchFilter) -> int:
        """Returns the number of contexts that match a filter; names in any spelling."""
        return self._library.contexts.count(self.identity, self._resolve_names(criteria)[0])

    def search(
        self, query: str | None, criteria: SearchFilter, top_k: int, *, alpha: float | None = None
    ) -> SearchResult:
        """Returns the best chunks for a query, or those of the newest contexts without one.

        Entities may be spelled in any way. `alpha` is the weight of the semantic score against
        keywords, 0 to 1, by default the engine's.
        """
        criteria, unknown = self._resolve_names(criteria)
        if query is None:
            found = self._library.engine.newest(self.identity, criteria, top_k)
        else:
            found = self._library.engine.search(self.identity, query, criteria, top_k, alpha=alpha)
            found = self._library.confidence.judge(query, found)
        return replace(self._readable(found), unknown_names=unknown)

    def ask(self, query: UnifiedQuery) -> UnifiedResult:
        """Returns the best hits for a query over memory and knowledge."""
        return self._readable(
            self._library.unified.search(self.identity, query, self._resolve_names)
        )

    def _readable(self, found: _Found) -> _Found:
        """Returns a result without the hits whose files rules deny reading."""
        hits = tuple(filter(self._shows_hit, found.hits))
        nearest = tuple(filter(self._shows_hit, found.nearest))
        return replace(found, hits=hits, nearest=nearest)

    def _shows_hit(self, hit: SearchHit | UnifiedHit) -> bool:
        passage = hit if isinstance(hit, SearchHit) else hit.passage
        return passage is None or self.shows(passage.context)

    def shows(self, context: Context) -> bool:
        """Returns whether rules allow reading the file that a context was stored from."""
        return (
            self._closes is None or context.raw_type != "file" or not self._closes(context.raw_id)
        )

    def _check_readable(self, context: Context, chunks: list[Chunk]) -> tuple[Context, list[Chunk]]:
        if not self.shows(context):
            raise DocumentNotFoundError(
                f"A rule in the settings denies reading {context.raw_id!r}, also its stored copy.",
                suggestions=("Work with other documents, or ask the user to change the rule.",),
            )
        return context, chunks

    def index_status(self) -> IndexStatus:
        """Returns how much of the stored data semantic search covers."""
        return self._library.models.status(self.identity.user_id, self._library.indexer.problem)

    def _store(self, new: NewContext, chunks: Sequence[PreparedChunk]) -> Stored:
        match new.context_type:
            case ContextType.DOCUMENT:
                context, replaced = self._library.contexts.replace_document(
                    self.identity, new, chunks
                )
                return Stored(context, "replaced" if replaced else "added")
            case ContextType.KNOWLEDGE:
                return self._library.knowledge.add(self.identity, new, chunks)
            case ContextType.EVENT:
                return Stored(self._library.contexts.append(self.identity, new, chunks), "added")
            case ContextType.PROFILE | ContextType.ENTITY:
                raise ValueError("Cards are generated from profiles and entities.")

    def _resolve_names(self, criteria: SearchFilter) -> tuple[SearchFilter, tuple[str, ...]]:
        """Replaces names by the stored ones; returns the filter and the unknown names."""
        from storage.tokenize import fold

        if not criteria.entities:
            return criteria, ()
        mentions = self._library.mentions

        def is_said(names: Sequence[str]) -> bool:
            return bool(mentions.chunks(self.identity, names))

        folded: dict[str, None] = {}
        unknown: dict[str, None] = {}
        for name in criteria.entities:
            spellings = self.people.spellings(name, is_said)
            if not spellings:
                unknown[name] = None
            # An unknown name is kept, so that the filter matches nothing.
            folded.update(dict.fromkeys(spellings or (fold(name),)))
        said_in = mentions.chunks(self.identity, tuple(folded))
        resolved = replace(criteria, entities=tuple(folded), said_in=said_in)
        return resolved, tuple(unknown)

    def _with_all_names(self, criteria: SearchFilter) -> SearchFilter:
        """Returns the filter with all certain synonyms of its names, and with mentions in texts."""
        mentions, names = self._library.mentions, dict.fromkeys(_fold_names(criteria).entities)
        chunks: set[int] = set()
        for name in criteria.entities:
            known = self.people.names_of(name)
            names |= dict.fromkeys(known)
            chunks.update(
                mentions.chunks(self.identity, known)
                if known
                else mentions.saying(self.identity, name)
            )
        return replace(criteria, entities=tuple(names), said_in=tuple(sorted(chunks)))


def _fold_names(criteria: SearchFilter) -> SearchFilter:
    """Returns the filter with folded names, and without similar names."""
    from storage.tokenize import fold

    return replace(criteria, entities=tuple(fold(name) for name in criteria.entities))
