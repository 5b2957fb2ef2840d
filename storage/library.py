"""The library: every part of storage put together."""

from __future__ import annotations

import threading
import uuid
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from storage.clients import ClientFactory, plain_client
from storage.contexts.contexts import ContextRepository
from storage.contexts.knowledge import KnowledgeBase
from storage.database import Database
from storage.events.events import Events
from storage.index.chroma import chroma_home
from storage.index.embedders.protocol import Embedder
from storage.index.indexer import Indexer
from storage.index.meaning import MakeEmbedder, Models
from storage.index.vectors import VectorIndex
from storage.memory.consolidation import Consolidation
from storage.memory.entries import Entries, OwnEntries
from storage.memory.recent import Recent
from storage.memory.recorder import Recorder
from storage.models import Identity
from storage.people.people import People
from storage.reading.parse import MAX_BYTES
from storage.retrieval.search import SearchEngine
from storage.shelf import Shelf

if TYPE_CHECKING:  # loaded on first use
    from storage.catalog.catalog import Catalog
    from storage.directory.roster import Rosters
    from storage.retrieval.unified import UnifiedSearch

__all__ = ["Library"]

_NAME = "library"


def _makes_none(_model_id: str) -> Embedder | None:
    return None


class Library:
    """Everything that one data directory keeps.

    Args:
        directory: The data directory; made, readable by its owner only, if it does not exist.
        embedder: Makes the vectors. Where those that are stored were made by another one,
            everything is embedded anew in the background, and searches use the other one until
            that is done.
        make: Makes that other one by its model_id, or None where it cannot.
        chroma_url: Address of the Chroma server that keeps the vector index; empty means Chroma
            embedded in this process.
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
            name = _name(self.database)
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
        self._contexts = ContextRepository(self.database)
        self._knowledge = KnowledgeBase(self.database, models, self.engine)
        self._max_document_bytes = max_document_bytes
        self._first_use = threading.Lock()

    def shelf(self, identity: Identity) -> Shelf:
        """What one identity sees and changes."""
        from storage.directory.directories import Directories  # noqa: PLC0415  # on first use
        from storage.memory.memories import Memories  # noqa: PLC0415  # the same
        from storage.todos import Todos  # noqa: PLC0415  # the same

        with self._first_use:  # calls come at once
            unified, rosters = self._unified, self._rosters
        return Shelf(
            identity,
            contexts=self._contexts,
            people=People(self.database, identity),
            knowledge=self._knowledge,
            engine=self.engine,
            unified=unified,
            indexer=self.indexer,
            events=Events(
                identity,
                database=self.database,
                engine=self.engine,
                embedder=self.embedder,
                indexer=self.indexer,
            ),
            entries=OwnEntries(self.entries, identity),
            memories=Memories(
                identity,
                database=self.database,
                knowledge=self._knowledge,
                entries=self.entries,
                embedder=self.embedder,
                indexer=self.indexer,
            ),
            directories=Directories(
                identity,
                database=self.database,
                engine=self.engine,
                indexer=self.indexer,
                rosters=rosters,
            ),
            todos=Todos(identity, self.database),
            max_document_bytes=self._max_document_bytes,
        )

    def close(self) -> None:
        """Ends the background work and lets go of the files."""
        self.recorder.close()
        if "_unified" in vars(self):
            self._unified.close()
        self.indexer.stop()
        self.vectors.close()
        self.database.close()

    @cached_property
    def catalog(self) -> Catalog:
        """What is kept about tools: records, listings, uses, analyses."""
        from storage.catalog.catalog import Catalog  # noqa: PLC0415  # on first use

        return Catalog(self.database)

    @cached_property
    def _unified(self) -> UnifiedSearch:
        from storage.retrieval.unified import UnifiedSearch  # noqa: PLC0415  # on first use

        return UnifiedSearch(self.database, self.engine, self.indexer, self.entries, self.recent)

    @cached_property
    def _rosters(self) -> Rosters:
        from storage.directory.roster import Rosters  # noqa: PLC0415  # on first use

        return Rosters(self.database)


def _name(database: Database) -> str:
    """A name that no other library has: several may share a Chroma server."""
    if database.get_meta(_NAME) is None:
        with database.write() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)",
                (_NAME, f"toolcrib-{uuid.uuid4().hex[:16]}"),
            )
    return str(database.get_meta(_NAME))  # another process may have been first
