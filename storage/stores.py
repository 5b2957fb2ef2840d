"""Creates all parts of storage; most are loaded on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from storage.database import Database
from storage.index.embedders.base import Embedder
from storage.index.embedding_models import MakeEmbedder, Models
from storage.index.indexer import Indexer
from storage.index.vectors import VectorIndex, chroma_home
from storage.locks import made_once
from storage.memory.consolidation import Consolidation
from storage.memory.entries import Entries, Recorder
from storage.outbound import ClientFactory, plain_client
from storage.reading.formats import MAX_BYTES

if TYPE_CHECKING:  # loaded on first use
    from storage.agent.delegations import Delegations
    from storage.agent.jobs import JobStore
    from storage.catalog.catalog import Catalog
    from storage.contexts.contexts import ContextRepository
    from storage.contexts.knowledge import KnowledgeBase
    from storage.directory.roster import Rosters
    from storage.keeping.changes.changes import Changes
    from storage.people.mentions_index import MentionsIndex
    from storage.retrieval.bm25 import Recent
    from storage.retrieval.confidence import Confidence
    from storage.retrieval.search import SearchEngine
    from storage.retrieval.unified import UnifiedSearch


class Stores:
    """All stores of one data directory.

    The data directory is created, readable by its owner only. `make` makes the embedder of stored
    vectors by its model_id, or returns None if it cannot: searches use it until all vectors are
    replaced in the background. An empty `chroma_url` means embedded Chroma. `alpha` is the weight
    of the semantic score against keywords, 0 to 1. With `consolidate`, memories move between layers
    automatically.
    """

    def __init__(  # noqa: PLR0913  # the options of a library
        self,
        directory: Path,
        embedder: Embedder,
        *,
        make: MakeEmbedder = lambda _model_id: None,
        chroma_url: str = "",
        client: ClientFactory = plain_client,
        alpha: float = 0.5,
        max_document_bytes: int = MAX_BYTES,
        consolidate: bool = True,
        change_mb: int = 500,
        change_days: int = 30,
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
        self.recorder = Recorder(self.entries)
        self.embedder = embedder
        self.importing = False
        self.store_waiting: Callable[[], None] = lambda: None  # what is not in the record yet
        self.max_document_bytes = max_document_bytes
        self._alpha = alpha
        self._change_mb = change_mb
        self._change_days = change_days

    def close(self) -> None:
        """Stops the background work and closes the files."""
        self.recorder.close()
        if "unified" in vars(self):
            self.unified.close()
        self.indexer.stop()
        self.vectors.close()
        if "changes" in vars(self):
            self.changes.close()
        self.database.close()

    @made_once
    def catalog(self) -> Catalog:
        """Tool data: records, listings, uses, analyses."""
        from storage.catalog.catalog import Catalog

        return Catalog(self.database)

    @made_once
    def changes(self) -> Changes:
        """File changes by agents, with the replaced contents."""
        from storage.keeping.changes.changes import open_changes

        return open_changes(
            self.directory, keep_bytes=self._change_mb * 1_000_000, keep_days=self._change_days
        )

    @made_once
    def confidence(self) -> Confidence:
        """Rates how likely hits are to answer."""
        from storage.retrieval.confidence import Confidence, CrossEncoder

        return Confidence(self.models, CrossEncoder())

    @made_once
    def contexts(self) -> ContextRepository:
        """The contexts of all identities and types."""
        from storage.contexts.contexts import ContextRepository

        return ContextRepository(self.database)

    @made_once
    def delegations(self) -> Delegations:
        """Work delegated to other agents."""
        from storage.agent.delegations import Delegations

        return Delegations(self.database)

    @made_once
    def engine(self) -> SearchEngine:
        """Searches stored contexts by keywords and semantically."""
        from storage.retrieval.search import SearchEngine

        return SearchEngine(
            self.database, self.models, self.vectors, self.indexer, alpha=self._alpha
        )

    @made_once
    def jobs(self) -> JobStore:
        """Calls that continue in the background while their callers poll for the result."""
        from storage.agent.jobs import JobStore

        return JobStore(self.database)

    @made_once
    def knowledge(self) -> KnowledgeBase:
        """Knowledge, with near-duplicates merged."""
        from storage.contexts.knowledge import KnowledgeBase

        return KnowledgeBase(self.database, self.models, self.engine)

    @made_once
    def recent(self) -> Recent:
        """Searches the latest entries of each session."""
        from storage.retrieval.bm25 import Recent

        return Recent(self.database, self.entries)

    @made_once
    def rosters(self) -> Rosters:
        """The cached directories of all identities."""
        from storage.directory.roster import Rosters

        return Rosters(self.database)

    @made_once
    def mentions(self) -> MentionsIndex:
        """Finds the texts that mention entities."""
        from storage.people.mentions_index import MentionsIndex

        return MentionsIndex(self.database)

    @made_once
    def unified(self) -> UnifiedSearch:
        """Answers queries over memory and knowledge."""
        from storage.retrieval.unified import UnifiedSearch

        return UnifiedSearch(self.database, self.engine, self.confidence, self.entries, self.recent)
