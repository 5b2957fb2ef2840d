"""The library: every part of storage put together."""

from __future__ import annotations

from pathlib import Path

from storage.contexts import ContextRepository
from storage.database import Database
from storage.embedders.protocol import Embedder
from storage.errors import ModelMismatchError
from storage.events import Events
from storage.indexer import Indexer
from storage.knowledge import KnowledgeBase
from storage.models import Identity
from storage.parse import MAX_BYTES
from storage.people import People
from storage.search import SearchEngine
from storage.shelf import Shelf
from storage.vectors import VectorIndex

__all__ = ["Library"]

_EMBEDDER = "embedder"


class Library:
    """Everything that one data directory keeps.

    Args:
        directory: The data directory; made, readable by its owner only, if it does not exist.
        embedder: Makes the vectors; a directory keeps to the one that it began with.
        alpha: Weight of meaning against words in a search, 0 to 1.
        max_document_bytes: Largest document that is taken.

    Raises:
        ModelMismatchError: If the stored vectors were made by another embedder.
        SchemaTooNewError: If a newer version of Toolcrib wrote the directory.
        StorageUnavailableError: If the directory cannot be used.
    """

    def __init__(
        self,
        directory: Path,
        embedder: Embedder,
        *,
        alpha: float = 0.5,
        max_document_bytes: int = MAX_BYTES,
    ) -> None:
        self.directory = directory
        self.database = Database(directory / "toolcrib.db")
        try:
            _check_embedder(self.database, embedder)
        except BaseException:
            self.database.close()
            raise
        self.vectors = VectorIndex(directory / "chroma", model_id=embedder.model_id)
        self.indexer = Indexer(self.database, embedder, self.vectors, directory / "indexer.lock")
        self.engine = SearchEngine(self.database, embedder, self.vectors, self.indexer, alpha=alpha)
        self._embedder = embedder
        self._contexts = ContextRepository(self.database)
        self._knowledge = KnowledgeBase(self.database, embedder, self.engine)
        self._max_document_bytes = max_document_bytes

    def shelf(self, identity: Identity) -> Shelf:
        """What one identity sees and changes."""
        return Shelf(
            identity,
            contexts=self._contexts,
            people=People(self.database, identity),
            knowledge=self._knowledge,
            engine=self.engine,
            indexer=self.indexer,
            events=Events(
                identity,
                database=self.database,
                engine=self.engine,
                embedder=self._embedder,
                indexer=self.indexer,
            ),
            max_document_bytes=self._max_document_bytes,
        )

    def close(self) -> None:
        """Ends the background work and lets go of the files."""
        self.indexer.stop()
        self.vectors.close()
        self.database.close()


def _check_embedder(database: Database, embedder: Embedder) -> None:
    """Records the embedder on first use, and refuses another one later."""
    scheme = f"{embedder.model_id}/{embedder.dimensions}"
    recorded = database.get_meta(_EMBEDDER)
    if recorded is None:
        with database.write() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", (_EMBEDDER, scheme)
            )
        recorded = database.get_meta(_EMBEDDER)  # another process may have been first
    if recorded != scheme:
        raise ModelMismatchError(
            f"The vectors in {database.path.parent} were made by {recorded}, not by {scheme}.",
            suggestions=("Choose another data directory, or the embedder it began with.",),
        )
