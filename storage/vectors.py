"""The vector index: ChromaDB, embedded, one collection a user, rebuildable from the record.

Processes that share a directory keep it whole by two rules, both held by the caller: only the
holder of the indexer's lock writes, and whoever finds that another process has written since
(`generation`) reopens the index before using it. Chroma itself notices neither.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.errors import VectorIndexError

if TYPE_CHECKING:
    from storage.embedders.protocol import Vectors

__all__ = ["VectorIndex"]

MAX_BATCH = 1000
"""Rows a call; Chroma refuses more than 5,461."""

PROBE = 2500
"""Neighbours asked for to see whether the index has what it counts: more than Chroma's log holds
(`sync_threshold`, 1,000, and a batch), which still answers where the graph is lost."""


class VectorIndex:
    """Nearest neighbours among one user's vectors.

    Args:
        directory: Where Chroma keeps its files.
        model_id: The embedder's, recorded with each collection.
    """

    def __init__(self, directory: Path, *, model_id: str) -> None:
        self.directory = directory
        self._model_id = model_id
        self._turn = threading.RLock()
        self._client: Any = None
        self._generation: int | None = None

    def follow(self, generation: int) -> None:
        """Reopens the index if another process has written since it was opened."""
        with self._turn:
            if self._client is not None and generation != self._generation:
                self.close()
            self._generation = generation

    def wrote(self, generation: int) -> None:
        """Says that the index as it is open now is of this generation."""
        with self._turn:
            self._generation = generation

    def upsert(self, user_id: str, seqs: Sequence[int], vectors: Vectors) -> None:
        """Adds or replaces the vectors of these contexts."""
        with self._collection(user_id) as collection:
            for start in range(0, len(seqs), MAX_BATCH):
                batch = slice(start, start + MAX_BATCH)
                collection.upsert(ids=_ids(seqs[batch]), embeddings=vectors[batch])

    def delete(self, user_id: str, seqs: Sequence[int]) -> None:
        """Removes these contexts; those that are not there count as removed."""
        with self._collection(user_id) as collection:
            for start in range(0, len(seqs), MAX_BATCH):
                collection.delete(ids=_ids(seqs[start : start + MAX_BATCH]))

    def nearest(self, user_id: str, vector: Vectors, count: int) -> list[int]:
        """The contexts nearest to a vector by cosine, nearest first."""
        with self._collection(user_id) as collection:
            found = collection.query(query_embeddings=[vector], n_results=count, include=[])
        return [int(identifier) for identifier in found["ids"][0]]

    def count(self, user_id: str) -> int:
        """How many vectors the user has in the index."""
        with self._collection(user_id) as collection:
            return int(collection.count())

    def is_whole(self, user_id: str, vector: Vectors) -> bool:
        """Whether it finds as many neighbours as it counts, which it does not without its graph."""
        with self._collection(user_id) as collection:
            wanted = min(int(collection.count()), PROBE)
        return not wanted or len(self.nearest(user_id, vector, wanted)) == wanted

    def drop(self) -> None:
        """Removes the index and its files; the record can fill it again."""
        with self._turn:
            self.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def close(self) -> None:
        """Lets go of the files; the next use opens them again."""
        with self._turn:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    @contextmanager
    def _collection(self, user_id: str) -> Iterator[Any]:
        with self._turn, self._translated():
            if self._client is None:
                self._client = self._open()
            yield self._client.get_or_create_collection(
                name="user-" + hashlib.sha256(user_id.encode()).hexdigest()[:32],
                embedding_function=None,
                configuration={"hnsw": {"space": "cosine"}},
                metadata={"model": self._model_id},
            )

    def _open(self) -> Any:  # noqa: ANN401  # a chromadb client, imported on first use
        import chromadb  # noqa: PLC0415  # imported on first use
        from chromadb.api.shared_system_client import (  # noqa: PLC0415  # imported on first use
            SharedSystemClient,
        )
        from chromadb.config import Settings  # noqa: PLC0415  # imported on first use

        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = str(self.directory)
        try:
            return chromadb.PersistentClient(
                path=path, settings=Settings(anonymized_telemetry=False)
            )
        except BaseException:
            # Chroma would answer the next attempt with the system that did not start.
            SharedSystemClient._identifier_to_system.pop(path, None)  # noqa: SLF001  # nothing public forgets one path
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of Chroma's Rust core is no Exception
            with suppress(
                Exception
            ):  # what is broken need not close well, but is shared until then
                self.close()
            raise VectorIndexError(
                f"The vector index in {self.directory} failed: {error}.",
                suggestions=("It is rebuilt from the record; searches go on without it.",),
            ) from error


def _ids(seqs: Sequence[int]) -> list[str]:
    return [str(seq) for seq in seqs]
