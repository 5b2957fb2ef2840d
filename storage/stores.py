"""Every part of storage put together; most are loaded and made when they are first asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.database import Database
from storage.index.chroma import chroma_home
from storage.index.embedders.base import Embedder
from storage.index.embedding_models import MakeEmbedder, Models
from storage.index.indexer import Indexer
from storage.index.vectors import VectorIndex
from storage.locks import made_once
from storage.memory.consolidation import Consolidation
from storage.memory.entries import Entries
from storage.memory.recorder import Recorder
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
    from storage.memory.recent import Recent
    from storage.people.saidnames import SaidNames
    from storage.retrieval.confidence import Confidence
    from storage.retrieval.search import SearchEngine
    from storage.retrieval.unified import UnifiedSearch


def _makes_none(_model_id: str) -> Embedder | None:
    return None


class Stores:
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
        change_mb: Megabytes that the kept changes of files may take.
        change_days: Days that a change is kept.

    Attributes:
        importing: Whether whatever this process stores is one of many: see `NewContext`.

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
        self.max_document_bytes = max_document_bytes
        self._alpha = alpha
        self._change_mb = change_mb
        self._change_days = change_days

    def close(self) -> None:
        """Ends the background work and lets go of the files."""
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
        """What is kept about tools: records, listings, uses, analyses."""
        from storage.catalog.catalog import Catalog

        return Catalog(self.database)

    @made_once
    def changes(self) -> Changes:
        """What agents changed in files, and what was there before."""
        from storage.keeping.changes.changes import open_changes

        return open_changes(
            self.directory,
            keep_bytes=self._change_mb * 1_000_000,
            keep_days=self._change_days,
        )

    @made_once
    def confidence(self) -> Confidence:
        """How sure hits are to answer."""
        from storage.retrieval.confidence import Confidence
        from storage.retrieval.crossencoder import CrossEncoder

        return Confidence(self.models, CrossEncoder())

    @made_once
    def contexts(self) -> ContextRepository:
        """The contexts of every identity, whatever their kind."""
        from storage.contexts.contexts import ContextRepository

        return ContextRepository(self.database)

    @made_once
    def delegations(self) -> Delegations:
        """Work that was given to other agents."""
        from storage.agent.delegations import Delegations

        return Delegations(self.database)

    @made_once
    def engine(self) -> SearchEngine:
        """Searches what is stored, by words and by meaning."""
        from storage.retrieval.search import SearchEngine

        return SearchEngine(
            self.database, self.models, self.vectors, self.indexer, alpha=self._alpha
        )

    @made_once
    def jobs(self) -> JobStore:
        """The calls that go on after their callers were told to look again."""
        from storage.agent.jobs import JobStore

        return JobStore(self.database)

    @made_once
    def knowledge(self) -> KnowledgeBase:
        """Knowledge, in which what says nearly the same is one."""
        from storage.contexts.knowledge import KnowledgeBase

        return KnowledgeBase(self.database, self.models, self.engine)

    @made_once
    def recent(self) -> Recent:
        """The latest entries of each session, ready to be searched."""
        from storage.memory.recent import Recent

        return Recent(self.database, self.entries)

    @made_once
    def rosters(self) -> Rosters:
        """The directories of every identity as they were read last."""
        from storage.directory.roster import Rosters

        return Rosters(self.database)

    @made_once
    def said_names(self) -> SaidNames:
        """Which texts say the names of entities."""
        from storage.people.saidnames import SaidNames

        return SaidNames(self.database)

    @made_once
    def unified(self) -> UnifiedSearch:
        """Answers questions over memory and knowledge."""
        from storage.retrieval.unified import UnifiedSearch

        return UnifiedSearch(
            self.database, self.engine, self.confidence, self.indexer, self.entries, self.recent
        )
