"""The vector index: ChromaDB, one collection per model and user, rebuildable from the record.

Processes that share an embedded Chroma's directory avoid damage by two rules, which the caller
enforces. Only the holder of the indexer's lock writes. Before writing, a process reopens the index
if another has written since (`generation`), because Chroma itself does not notice.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from storage.errors import VectorIndexError
from storage.index.chroma import ChromaHome

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

MAX_BATCH = 1000  # rows per call; Chroma refuses more than 5,461

# Candidates kept by a search of the graph.
#
# Of the true 100 nearest among 20,000 it then found 99.9 %, with Chroma's default of 100 99.5 %,
# for half a millisecond more.
EF_SEARCH = 300

# Neighbours to request when checking that the index has all it counts.
#
# More than Chroma's log holds (`sync_threshold`, 1,000, and a batch), since the log still answers
# when the graph is lost.
PROBE = 2500

# How stale a search may be.
#
# Reopening takes 40 ms, which every search would pay while another process writes continuously.
REOPEN_SECONDS = 1.0


class VectorIndex:
    """Finds nearest neighbours among one user's vectors of one model."""

    def __init__(self, home: ChromaHome, *, library: str) -> None:
        self.home = home
        self._library = library
        self._turn = threading.RLock()
        self._client: Any = None
        self._collections: dict[str, Any] = {}  # fetching one costs half a query
        self._generation: int | None = None
        self._opened = 0.0

    def follow(self, generation: int, *, at_once: bool = True) -> None:
        """Reopens the index if another process has written since it was opened.

        Unless the next operation must see that `at_once`, its state may be `REOPEN_SECONDS` old.
        """
        if not self.home.shared_files:
            return
        with self._turn:
            if self._client is not None and generation != self._generation:
                if not at_once and time.monotonic() - self._opened < REOPEN_SECONDS:
                    return
                self.close()
            self._generation = generation

    def wrote(self, generation: int) -> None:
        """Records that the open index is of this generation."""
        with self._turn:
            self._generation = generation

    def upsert(self, model: int, user_id: str, seqs: Sequence[int], vectors: Vectors) -> None:
        """Adds or replaces the vectors of these chunks."""
        with self._open() as client:
            collection = client.get_or_create_collection(
                name=self._name(model, user_id),
                embedding_function=None,
                configuration={"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}},
            )
            for start in range(0, len(seqs), MAX_BATCH):
                batch = slice(start, start + MAX_BATCH)
                collection.upsert(ids=_ids(seqs[batch]), embeddings=vectors[batch])

    def delete(self, model: int, user_id: str, seqs: Sequence[int]) -> None:
        """Removes these chunks; missing ones are ignored."""
        with self._collection(model, user_id) as collection:
            for start in range(0, len(seqs), MAX_BATCH):
                if collection is not None:
                    collection.delete(ids=_ids(seqs[start : start + MAX_BATCH]))

    def nearest(self, model: int, user_id: str, vector: Vectors, count: int) -> list[int]:
        """Returns the chunks nearest to a vector by cosine, nearest first."""
        with self._collection(model, user_id) as collection:
            if collection is None:
                return []
            found = collection.query(query_embeddings=[vector], n_results=count, include=[])
        return [int(identifier) for identifier in found["ids"][0]]

    def count(self, model: int, user_id: str) -> int:
        """Returns the number of the user's vectors in the index."""
        with self._collection(model, user_id) as collection:
            return 0 if collection is None else int(collection.count())

    def is_whole(self, model: int, user_id: str, vector: Vectors) -> bool:
        """Returns whether searches find as many neighbours as counted, so the graph is intact."""
        wanted = min(self.count(model, user_id), PROBE)
        return not wanted or len(self.nearest(model, user_id, vector, wanted)) == wanted

    def drop(self) -> None:
        """Removes the index; the record can fill it again."""
        with self._turn, self._translate_errors():
            self.close()
            if not self.home.remove():
                self._delete_collections("")

    def drop_model(self, model: int) -> None:
        """Removes the vectors of one model."""
        self._delete_collections(f"{model}-")

    def close(self) -> None:
        """Releases the files or the server; the next use opens them again."""
        with self._turn:
            client, self._client = self._client, None
            self._collections.clear()
            if client is not None:
                self.home.close(client)

    def _name(self, model: int, user_id: str) -> str:
        return f"{self._library}-{model}-{hashlib.sha256(user_id.encode()).hexdigest()[:32]}"

    def _delete_collections(self, start: str) -> None:
        with self._open() as client:
            self._collections.clear()
            for collection in client.list_collections():
                if collection.name.startswith(f"{self._library}-{start}"):
                    client.delete_collection(collection.name)

    @contextmanager
    def _collection(self, model: int, user_id: str) -> Iterator[Any]:
        """Opens a collection; yields None if nothing was ever added."""
        from chromadb.errors import NotFoundError

        name = self._name(model, user_id)
        with self._open() as client:
            if name not in self._collections:
                with suppress(NotFoundError):
                    self._collections[name] = client.get_collection(name, embedding_function=None)
            yield self._collections.get(name)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with self._turn, self._translate_errors():
            if self._client is None:
                self._client = self.home.open()
                self._opened = time.monotonic()
            yield self._client

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of Chroma's Rust core is not an Exception
            with suppress(
                Exception
            ):  # a broken client may fail to close, but stays shared until it is closed
                self.close()
            if isinstance(error, VectorIndexError):
                raise
            raise VectorIndexError(
                f"The vector index in {self.home.name} failed: {error}.",
                suggestions=("It is rebuilt from the record; searches continue without it.",),
            ) from error


def _ids(seqs: Sequence[int]) -> list[str]:
    return [str(seq) for seq in seqs]
