"""The shelf: what one identity sees of the library, and changes in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from storage.contexts.contexts import ContextRepository
from storage.contexts.intake import OnProgress, PreparedChunk, normalized, prepare
from storage.contexts.knowledge import KnowledgeBase
from storage.errors import StorageUnavailableError
from storage.events.events import Events
from storage.index.indexer import Indexer
from storage.memory.entries import OwnEntries
from storage.models import (
    Chunk,
    Context,
    ContextType,
    Identity,
    IndexStatus,
    NewContext,
    SearchFilter,
    SearchResult,
    Stored,
)
from storage.people.names import fold
from storage.people.people import People
from storage.retrieval.inquiry import Findings, Inquiry
from storage.retrieval.search import SearchEngine

if TYPE_CHECKING:  # loaded on first use
    from storage.directory.directories import Directories
    from storage.memory.memories import Memories
    from storage.retrieval.unified import UnifiedSearch
    from storage.todos import Todos

__all__ = ["Shelf"]

FORGET_BATCH = 200
"""Contexts deleted in one transaction: less than a second, for which other writers wait."""


class Shelf:
    """One identity's part of the library; its calls block, so run them in a worker thread.

    Args:
        identity: Whose contexts every call is bound to.
        contexts: The repository.
        people: The profile, entities and relationships of the same identity.
        knowledge: Adds knowledge.
        engine: The search engine.
        unified: Answers questions over memory and knowledge.
        indexer: The background worker.
        events: The identity's events.
        entries: The identity's recorded calls and messages.
        memories: The identity's memories.
        directories: The identity's directories.
        todos: The identity's to-do lists.
        max_document_bytes: Largest document that is taken.
    """

    def __init__(  # noqa: PLR0913  # the library hands over every part by name
        self,
        identity: Identity,
        *,
        contexts: ContextRepository,
        people: People,
        knowledge: KnowledgeBase,
        engine: SearchEngine,
        unified: UnifiedSearch,
        indexer: Indexer,
        events: Events,
        entries: OwnEntries,
        memories: Memories,
        directories: Directories,
        todos: Todos,
        max_document_bytes: int,
    ) -> None:
        self.identity = identity
        self.events = events
        self.entries = entries
        self.memories = memories
        self.directories = directories
        self.todos = todos
        self.people = people
        self.max_document_bytes = max_document_bytes
        self._contexts = contexts
        self._knowledge = knowledge
        self._engine = engine
        self._unified = unified
        self._indexer = indexer

    def add(self, new: NewContext, on_progress: OnProgress | None = None) -> Stored:
        """Stores a context in the way of its kind, and has it embedded.

        A document takes its earlier version's place, an event is appended, knowledge is merged
        into what says nearly the same. It can be found by its words as soon as this returns; by
        its meaning once it is embedded.

        Raises:
            InvalidSourceError: If the text is blank.
            StorageUnavailableError: If the record cannot be written; nothing was changed.
        """
        new = normalized(new)
        if new.context_type is ContextType.DOCUMENT:
            same = self._same_version(new)
            if same is not None:
                return Stored(same, "unchanged")
        stored = self._store(new, prepare(new, on_progress))
        self._indexer.notify()
        return stored

    def get(self, context_id: str) -> tuple[Context, list[Chunk]]:
        """A context and its chunks in order.

        Raises:
            ContextNotFoundError: If there is no such context.
        """
        return self._contexts.get(self.identity, context_id)

    def get_document(self, raw_type: str, raw_id: str) -> tuple[Context, list[Chunk]]:
        """A document and its chunks in order.

        Raises:
            DocumentNotFoundError: If there is no such document.
        """
        return self._contexts.get_document(self.identity, raw_type, raw_id)

    def delete_document(self, raw_type: str, raw_id: str) -> int:
        """Deletes a document from every store and says how many chunks went.

        Raises:
            DocumentNotFoundError: If there is no such document.
        """
        removed = self._contexts.delete_document(self.identity, raw_type, raw_id)
        self._indexer.notify()
        return removed

    def forget(self, context_ids: Sequence[str]) -> int:
        """Deletes contexts from every store and says how many went."""
        removed = self._contexts.delete(self.identity, context_ids)
        self._indexer.notify()
        return removed

    def forgettable(
        self, wanted: SearchFilter, limit: int
    ) -> tuple[dict[ContextType, int], list[tuple[Context, str]]]:
        """How many contexts of each kind `forget_all` would delete.

        Returns:
            The counts, and the newest contexts, each with how its text begins.
        """
        wanted = _spelled_out(wanted)
        newest = self._contexts.newest(self.identity, wanted, limit)
        openings = self._contexts.openings(newest)
        shown = [(context, openings.get(context.id, "")) for context in newest]
        return self._contexts.count_kinds(self.identity, wanted), shown

    def forget_all(self, wanted: SearchFilter) -> dict[ContextType, int]:
        """Deletes what fits a filter from every store, and says how many of each kind went.

        Entities are names as they stand there, in any case and accents: a name that is merely like
        them is not enough. It goes in transactions of some hundred, so that no other writer waits
        long; what is added meanwhile stays.

        Raises:
            StorageUnavailableError: If the record cannot be written; it says how many had gone.
        """
        wanted = _spelled_out(wanted)
        last = self._contexts.last_seq(self.identity, wanted)
        gone: Counter[ContextType] = Counter()
        try:
            while kinds := self._contexts.delete_some(self.identity, wanted, last, FORGET_BATCH):
                gone.update(kinds)
        except StorageUnavailableError as error:
            raise StorageUnavailableError(
                f"{error.message} {gone.total()} contexts had been deleted before.",
                suggestions=error.suggestions,
            ) from error
        finally:
            self._indexer.notify()
        return dict(sorted(gone.items()))

    def contexts(self, wanted: SearchFilter, limit: int, offset: int = 0) -> list[Context]:
        """Contexts that fit a filter, newest first; entities are names in any spelling."""
        return self._contexts.newest(self.identity, self._resolved(wanted)[0], limit, offset)

    def count(self, wanted: SearchFilter) -> int:
        """How many contexts fit a filter; entities are names in any spelling."""
        return self._contexts.count(self.identity, self._resolved(wanted)[0])

    def search(
        self,
        query: str | None,
        wanted: SearchFilter,
        top_k: int,
        *,
        alpha: float | None = None,
    ) -> SearchResult:
        """The best chunks for a query, or those of the newest contexts without one.

        Args:
            query: What to look for.
            wanted: What narrows the search; entities are names in any spelling.
            top_k: How many hits at most.
            alpha: Weight of meaning against words, 0 to 1; by default the engine's.
        """
        wanted, unknown = self._resolved(wanted)
        if query is None:
            found = self._engine.newest(self.identity, wanted, top_k)
        else:
            found = self._engine.search(self.identity, query, wanted, top_k, alpha=alpha)
        return replace(found, unknown_names=unknown)

    def ask(self, inquiry: Inquiry) -> Findings:
        """What is found for a question over memory and knowledge, best first."""
        return self._unified.ask(self.identity, inquiry, self._resolved)

    def index_status(self) -> IndexStatus:
        """How much of what is stored can be found by meaning."""
        return self._indexer.status(self.identity)

    def _store(self, new: NewContext, chunks: Sequence[PreparedChunk]) -> Stored:
        match new.context_type:
            case ContextType.DOCUMENT:
                context, replaced = self._contexts.replace_document(self.identity, new, chunks)
                return Stored(context, "replaced" if replaced else "added")
            case ContextType.KNOWLEDGE:
                context, near = self._knowledge.add(self.identity, new, chunks)
                return Stored(context, "added" if near is None else "merged", near)
            case ContextType.EVENT:
                return Stored(self._contexts.append(self.identity, new, chunks), "added")

    def _same_version(self, new: NewContext) -> Context | None:
        earlier = self._contexts.find_document(self.identity, new.raw_type, new.raw_id)
        if earlier is None:
            return None
        same = (
            earlier.sha256 == new.sha256
            and earlier.title == new.title
            and earlier.summary == new.summary
            and earlier.media_type == new.media_type
            and earlier.file_path == new.file_path
            and set(earlier.keywords) == set(new.keywords)
            and set(earlier.entities) == set(new.entities)
            and earlier.confidence == new.confidence
            and earlier.importance == new.importance
            and dict(earlier.metadata) == dict(new.metadata)
            and new.event_time in (None, earlier.event_time)
        )
        return earlier if same else None

    def _resolved(self, wanted: SearchFilter) -> tuple[SearchFilter, tuple[str, ...]]:
        """The filter with the folded names that are stored for names in any spelling.

        Returns:
            The filter, and the names that nothing stored is like.
        """
        folded: dict[str, None] = {}
        unknown: dict[str, None] = {}
        for name in wanted.entities:
            spellings = self.people.spellings(name)
            if not spellings:
                unknown[name] = None
            # A name that is like none is kept: it fits nothing.
            folded.update(dict.fromkeys(spellings or (fold(name),)))
        return replace(wanted, entities=tuple(folded)), tuple(unknown)


def _spelled_out(wanted: SearchFilter) -> SearchFilter:
    """The filter with its names folded, and with no name that is merely like them."""
    return replace(wanted, entities=tuple(fold(name) for name in wanted.entities))
