"""The library: every part of storage put together, and the shelf: what one identity sees of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from storage.clients import ClientFactory, plain_client
from storage.contexts.contexts import ContextRepository
from storage.contexts.ingestion import OnProgress, PreparedChunk, is_same, normalized, prepare
from storage.contexts.knowledge import KnowledgeBase
from storage.database import Database
from storage.errors import StorageUnavailableError
from storage.events.events import Events
from storage.index.chroma import chroma_home
from storage.index.embedders.protocol import Embedder
from storage.index.embedding_models import MakeEmbedder, Models
from storage.index.indexer import Indexer
from storage.index.vectors import VectorIndex
from storage.memory.consolidation import Consolidation
from storage.memory.entries import Entries, OwnEntries
from storage.memory.recent import Recent
from storage.memory.recorder import Recorder
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
from storage.reading.parse import MAX_BYTES
from storage.retrieval.inquiry import Findings, Inquiry
from storage.retrieval.search import SearchEngine

if TYPE_CHECKING:  # loaded on first use
    from storage.catalog.catalog import Catalog
    from storage.directory.directories import Directories
    from storage.directory.roster import Rosters
    from storage.memory.memories import Memories
    from storage.retrieval.unified import UnifiedSearch
    from storage.todos import Todos

__all__ = ["Library", "Shelf"]

FORGET_BATCH = 200
"""Contexts deleted in one transaction: less than a second, for which other writers wait."""


def _makes_none(_model_id: str) -> Embedder | None:
    return None


class Library:
    """Everything that one data directory keeps.

    Args:
        directory: The data directory; made, readable by its owner only, if it does not exist.
        embedder: Makes the vectors. Those that another one made are replaced in the background;
            until that is done, searches use the other one.
        make: Makes that other one by its model_id, or None where it cannot.
        chroma_url: Address of a Chroma server for the vector index; empty means embedded Chroma.
        client: Makes what asks whether that server is there.
        alpha: Weight of meaning against words in a search, 0 to 1.
        max_document_bytes: Largest document that is taken.
        consolidate: Whether memories move between their layers by themselves.

    Raises:
        SchemaTooNewError: If a newer version of Toolcrib wrote the directory.
        StorageUnavailableError: If the directory cannot be used.
    """

    def __init__(  # noqa: PLR0913  # what can be set of a library
        self,
        directory: Path,
        embedder: Embedder,
        *,
        make: MakeEmbedder = _makes_none,
        chroma_url: str = "",
        client: ClientFactory = plain_client,
        alpha: float = 0.5,
        max_document_bytes: int = MAX_BYTES,
        consolidate: bool = True,
    ) -> None:
        self.directory = directory
        self.database = Database(directory / "toolcrib.db")
        try:
            models = Models(self.database, embedder, make)
            name = self.database.name
        except BaseException:
            self.database.close()
            raise
        self.models = models
        self.vectors = VectorIndex(chroma_home(directory, chroma_url, client), library=name)
        self.entries = Entries(self.database)
        self.indexer = Indexer(
            self.database,
            models,
            self.vectors,
            directory / "indexer.lock",
            chore=Consolidation(self.database, self.entries, embedder) if consolidate else None,
        )
        self.engine = SearchEngine(self.database, models, self.vectors, self.indexer, alpha=alpha)
        self.recent = Recent(self.database, self.entries)
        self.recorder = Recorder(self.entries)
        self.embedder = embedder
        self.contexts = ContextRepository(self.database)
        self.knowledge = KnowledgeBase(self.database, models, self.engine)
        self.max_document_bytes = max_document_bytes
        self._unified: UnifiedSearch | None = None
        self._rosters: Rosters | None = None
        self._first_use = threading.Lock()  # calls come at once

    def shelf(self, identity: Identity) -> Shelf:
        """What one identity sees and changes."""
        return Shelf(identity, self)

    def close(self) -> None:
        """Ends the background work and lets go of the files."""
        self.recorder.close()
        if self._unified is not None:
            self._unified.close()
        self.indexer.stop()
        self.vectors.close()
        self.database.close()

    @cached_property
    def catalog(self) -> Catalog:
        """What is kept about tools: records, listings, uses, analyses."""
        from storage.catalog.catalog import Catalog

        return Catalog(self.database)

    @property
    def unified(self) -> UnifiedSearch:
        """Answers questions over memory and knowledge."""
        from storage.retrieval.unified import UnifiedSearch

        with self._first_use:
            if self._unified is None:
                self._unified = UnifiedSearch(
                    self.database, self.engine, self.indexer, self.entries, self.recent
                )
            return self._unified

    @property
    def rosters(self) -> Rosters:
        """The directories of every identity as they were read last."""
        from storage.directory.roster import Rosters

        with self._first_use:
            if self._rosters is None:
                self._rosters = Rosters(self.database)
            return self._rosters


class Shelf:
    """What one identity sees of the library, and changes in it; its calls block.

    Its repositories are made when they are asked for: most calls need none of them.

    Args:
        identity: Whose contexts every call is bound to.
        library: Where they are kept.
    """

    def __init__(self, identity: Identity, library: Library) -> None:
        self.identity = identity
        self._library = library
        self.max_document_bytes = library.max_document_bytes
        self._contexts = library.contexts

    @cached_property
    def people(self) -> People:
        """The profile, entities and relationships."""
        return People(self._library.database, self.identity)

    @cached_property
    def entries(self) -> OwnEntries:
        """The recorded calls and messages."""
        return OwnEntries(self._library.entries, self.identity)

    @cached_property
    def events(self) -> Events:
        """The events."""
        return Events(
            self.identity,
            database=self._library.database,
            engine=self._library.engine,
            embedder=self._library.embedder,
            indexer=self._library.indexer,
        )

    @cached_property
    def memories(self) -> Memories:
        """The memories."""
        from storage.memory.memories import Memories

        return Memories(
            self.identity,
            database=self._library.database,
            knowledge=self._library.knowledge,
            entries=self._library.entries,
            embedder=self._library.embedder,
            indexer=self._library.indexer,
        )

    @cached_property
    def directories(self) -> Directories:
        """The directories."""
        from storage.directory.directories import Directories

        return Directories(
            self.identity,
            database=self._library.database,
            engine=self._library.engine,
            indexer=self._library.indexer,
            rosters=self._library.rosters,
        )

    @cached_property
    def todos(self) -> Todos:
        """The to-do lists."""
        from storage.todos import Todos

        return Todos(self.identity, self._library.database)

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
            earlier = self._contexts.find_document(self.identity, new.raw_type, new.raw_id)
            if earlier is not None and is_same(earlier, new):
                return Stored(earlier, "unchanged")
        stored = self._store(new, prepare(new, on_progress))
        self._library.indexer.notify()
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
        self._library.indexer.notify()
        return removed

    def forget(self, context_ids: Sequence[str]) -> int:
        """Deletes contexts from every store and says how many went."""
        removed = self._contexts.delete(self.identity, context_ids)
        self._library.indexer.notify()
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
            self._library.indexer.notify()
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
            found = self._library.engine.newest(self.identity, wanted, top_k)
        else:
            found = self._library.engine.search(self.identity, query, wanted, top_k, alpha=alpha)
        return replace(found, unknown_names=unknown)

    def ask(self, inquiry: Inquiry) -> Findings:
        """What is found for a question over memory and knowledge, best first."""
        return self._library.unified.ask(self.identity, inquiry, self._resolved)

    def index_status(self) -> IndexStatus:
        """How much of what is stored can be found by meaning."""
        return self._library.indexer.status(self.identity)

    def _store(self, new: NewContext, chunks: Sequence[PreparedChunk]) -> Stored:
        match new.context_type:
            case ContextType.DOCUMENT:
                context, replaced = self._contexts.replace_document(self.identity, new, chunks)
                return Stored(context, "replaced" if replaced else "added")
            case ContextType.KNOWLEDGE:
                context, near = self._library.knowledge.add(self.identity, new, chunks)
                return Stored(context, "added" if near is None else "merged", near)
            case ContextType.EVENT:
                return Stored(self._contexts.append(self.identity, new, chunks), "added")

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
