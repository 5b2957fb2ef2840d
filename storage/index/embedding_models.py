"""The embedding models of the record: the current one, and the next one that replaces it.

Searches use the current model. If the settings name another model, it becomes the next: every chunk
is queued for it, and new chunks are queued for both. Once nothing waits for it, it becomes the
current model, and the vectors of the old one are removed. Several processes share one record, some
perhaps with older settings, so each reads the models from the record every time.

Similarities of stored vectors are returned as seq → cosine; the vectors are of unit length.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.database import Database
from storage.errors import StorageUnavailableError
from storage.index.bounded import BoundedDict
from storage.index.embed_queue import Priority
from storage.index.embedders.base import DEFAULT_FLOOR, Embedder, scaled_cosine
from storage.index.lexical import count_chunks
from storage.models import IndexStatus
from storage.tokenize import is_mostly

if TYPE_CHECKING:
    from storage.contexts.filters import Seqs
    from storage.index.embedders.base import Vectors

# Vectors in memory at once; larger blocks take several times longer because of page faults.
SLICE = 250

CACHED_QUERIES = 256
# Seconds for which a failure is repeated to searches; each would wait for the same refusal.
FAILURE_SECONDS = 10.0
# Makes the embedder with a model_id, or returns None if the settings do not describe it.
MakeEmbedder = Callable[[str], Embedder | None]


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the record."""

    seq: int
    scheme: str  # the model_id of its embedder
    state: str  # "current", "next", or "old" until its vectors are removed
    dimensions: int | None  # the length of its vectors; None until it has one


@dataclass(frozen=True, slots=True)
class Embedding:
    """A vector, and the model whose vectors it can be compared with."""

    model: int
    vector: Vectors  # of unit length
    floor: float = DEFAULT_FLOOR  # the model's cosine similarity below which texts are unrelated
    # The static vector for chunks that wait for theirs (`static_vectors`); None to leave those out.
    rough: Vectors | None = None

    @classmethod
    def of_query(cls, model: Model, embedder: Embedder, text: str) -> Embedding:
        """Embeds a query."""
        vector = embedder.embed_query(text)
        check_dimensions(model, vector)
        return cls(model.seq, vector, embedder.floor)

    @classmethod
    def of_passages(cls, model: Model, embedder: Embedder, texts: Sequence[str]) -> list[Embedding]:
        """Embeds passages."""
        vectors = embedder.embed_passages(texts)
        check_dimensions(model, vectors)
        return [cls(model.seq, vector, embedder.floor) for vector in vectors]


def understands(embedder: Embedder, text: str) -> bool:
    """Returns whether an embedder supports the script of a text."""
    return not is_mostly(embedder.unread, text)


class CachingEmbedder:
    """Caches the recent queries and the last failure of another embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.model_id = embedder.model_id
        self.unread = embedder.unread
        self.floor = embedder.floor
        self._turn = threading.Lock()
        self._queries: BoundedDict[str, Vectors] = BoundedDict(CACHED_QUERIES)
        self._failure: tuple[float, StorageUnavailableError] | None = None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embeds passages; a success clears the cached failure."""
        vectors = self.embedder.embed_passages(texts)
        self._failure = None
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""
        with self._turn:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        failed = self._failure
        if failed is not None and time.monotonic() - failed[0] < FAILURE_SECONDS:
            message, suggestions = failed[1].message, failed[1].suggestions
            raise StorageUnavailableError(message, suggestions=suggestions) from failed[1]
        try:
            vector = self.embedder.embed_query(text)
        except StorageUnavailableError as error:
            self._failure = time.monotonic(), error
            raise
        with self._turn:
            self._failure = None
            self._queries[text] = vector
        return vector


class Models:
    """The models of one record, and their embedders; the wanted one becomes current or next."""

    def __init__(self, database: Database, wanted: Embedder, make: MakeEmbedder) -> None:
        self._database = database
        self._wanted = wanted.model_id
        self._make = make
        self._embedders = {wanted.model_id: CachingEmbedder(wanted)}
        with database.read() as connection:
            chosen = self._is_chosen(connection)
        if not chosen:
            with database.write() as connection:
                self._choose(connection)

    def current(self) -> tuple[Model, Embedder]:
        """Returns the current model and its embedder."""
        with self._database.read() as connection:
            (model, *_) = live_models(connection)
        return model, self.embedder(model)

    def embedder(self, model: Model) -> Embedder:
        """Returns the embedder of a model, which caches recent queries."""
        known = self._embedders.get(model.scheme)
        if known is None:
            made = self._make(model.scheme)
            if made is None:
                raise StorageUnavailableError(
                    f"The stored vectors are those of {model.scheme}, which neither this version"
                    f" nor its settings provide; {self._wanted} replaces them.",
                    suggestions=("Searches go by words until everything is embedded again.",),
                )
            known = self._embedders.setdefault(model.scheme, CachingEmbedder(made))
        return known

    def status(self, user_id: str, problem: str) -> IndexStatus:
        """Counts the user's chunks with vectors, and gives the indexer's problem if any waits."""
        with self._database.read() as connection:
            total = count_chunks(connection, user_id) - _count_words_only(connection, user_id)
            waiting = [
                connection.execute(
                    "SELECT count(*) FROM embed_queue WHERE model_seq = ? AND user_id = ?",
                    (model.seq, user_id),
                ).fetchone()[0]
                for model in live_models(connection)
            ]
            rough = connection.execute(
                "SELECT count(*) FROM rough_vectors WHERE user_id = ?", (user_id,)
            ).fetchone()[0]
        embedded, *following = [total - count for count in waiting]
        return IndexStatus(
            total,
            embedded,
            problem if any(waiting) else "",
            next_embedded=following[0] if following else None,
            rough=rough,
        )

    def _is_chosen(self, connection: sqlite3.Connection) -> bool:
        schemes = [model.scheme for model in live_models(connection)]
        return schemes[-1:] == [self._wanted]

    def _choose(self, connection: sqlite3.Connection) -> None:
        """Makes the wanted model the next one, unless it is the current one."""
        if self._is_chosen(connection):  # another process was faster
            return
        models = live_models(connection)
        for model in models[1:]:
            _retire(connection, model)
        if models and models[0].scheme == self._wanted:
            return
        seq = connection.execute(
            "INSERT INTO models (scheme, state) VALUES (?, ?) RETURNING seq",
            (self._wanted, "next" if models else "current"),
        ).fetchone()[0]
        connection.execute(
            "INSERT INTO embed_queue (chunk_seq, model_seq, user_id, priority)"
            " SELECT seq, ?, user_id, ? FROM chunks"
            " WHERE context_seq NOT IN (SELECT seq FROM contexts WHERE words_only)",
            (seq, Priority.LATER if models else Priority.ROUGH),
        )


def _count_words_only(connection: sqlite3.Connection, user_id: str) -> int:
    row = connection.execute(
        "SELECT count(*) FROM contexts x JOIN chunks c ON c.context_seq = x.seq"
        " WHERE x.user_id = ? AND x.words_only",
        (user_id,),
    ).fetchone()
    return int(row[0])


def passage(title: str, heading: str, content: str, before: str = "") -> str:
    """Returns the text to embed for a chunk, which depends on its title."""
    return "\n".join(part for part in (title, before, heading, content) if part)


def live_models(connection: sqlite3.Connection) -> list[Model]:
    """Returns the current model and, if there is one, the next."""
    return _read_models(connection, "state <> 'old' ORDER BY state")


def old_models(connection: sqlite3.Connection) -> list[Model]:
    """Returns the models whose vectors must be removed."""
    return _read_models(connection, "state = 'old'")


def _read_models(connection: sqlite3.Connection, where: str) -> list[Model]:
    rows = connection.execute(f"SELECT seq, scheme, state, dimensions FROM models WHERE {where}")
    return [Model(*row) for row in rows]


def store_vector(connection: sqlite3.Connection, chunk_seq: int, embedding: Embedding) -> None:
    """Removes a chunk from a model's queue and stores its vector.

    A deleted chunk, or any chunk of a retired model, is no longer queued and is ignored.
    """
    taken = connection.execute(
        "DELETE FROM embed_queue WHERE chunk_seq = ? AND model_seq = ?",
        (chunk_seq, embedding.model),
    )
    if taken.rowcount:
        connection.execute(
            "DELETE FROM rough_vectors WHERE chunk_seq = ? AND ?"
            " IN (SELECT seq FROM models WHERE state = 'current')",
            (chunk_seq, embedding.model),
        )
        keep_vector(connection, chunk_seq, embedding)


def keep_vector(connection: sqlite3.Connection, chunk_seq: int, embedding: Embedding) -> None:
    """Stores a chunk's vector, if its model is in use, and queues it for its user's collection."""
    known = connection.execute(
        "UPDATE models SET dimensions = ? WHERE seq = ? AND state <> 'old'",
        (len(embedding.vector), embedding.model),
    )
    if not known.rowcount:
        return
    connection.execute(
        "INSERT OR REPLACE INTO embeddings (chunk_seq, model_seq, vector) VALUES (?, ?, ?)",
        (chunk_seq, embedding.model, embedding.vector.astype("<f4").tobytes()),
    )
    connection.execute(
        "INSERT INTO vector_outbox (chunk_seq, model_seq, user_id) SELECT c.seq, v.model_seq,"
        " c.user_id FROM chunks c JOIN vector_collections v ON v.user_id = c.user_id"
        " WHERE c.seq = ? AND v.model_seq = ?",
        (chunk_seq, embedding.model),
    )


def similarities(
    connection: sqlite3.Connection, embedding: Embedding, seqs: Collection[int]
) -> dict[int, float]:
    """Returns the similarities of the given chunks that have a vector, rough ones included."""
    wanted = json.dumps(list(seqs))
    rows = connection.execute(
        "SELECT chunk_seq, vector FROM embeddings"
        " WHERE chunk_seq IN (SELECT value FROM json_each(?)) AND model_seq = ?",
        (wanted, embedding.model),
    )
    rough = "json_each(?) j CROSS JOIN rough_vectors r ON r.chunk_seq = j.value"
    return _rough(connection, embedding, rough, wanted) | _compare(rows, embedding.vector, "<f4")


def scan(connection: sqlite3.Connection, embedding: Embedding, user_id: str) -> dict[int, float]:
    """Returns the similarities of all chunks of a user, rough ones included."""
    rows = connection.execute(
        "SELECT c.seq, e.vector FROM chunks c JOIN embeddings e ON e.chunk_seq = c.seq"
        " WHERE c.user_id = ? AND e.model_seq = ?",
        (user_id, embedding.model),
    )
    rough = "rough_vectors r WHERE r.user_id = ?"
    return _rough(connection, embedding, rough, user_id) | _compare(rows, embedding.vector, "<f4")


def undelivered(connection: sqlite3.Connection, embedding: Embedding, user_id: str) -> Seqs:
    """Returns a user's chunks with comparable vectors that the vector index does not have yet."""
    import numpy as np

    rows = connection.execute(
        "SELECT chunk_seq FROM vector_outbox WHERE model_seq = :model AND user_id = :user"
        " UNION SELECT chunk_seq FROM rough_vectors WHERE user_id = :user AND :rough",
        {"model": embedding.model, "user": user_id, "rough": embedding.rough is not None},
    )
    return np.array([row[0] for row in rows], dtype=np.int64)


def nearest_first(scores: Mapping[int, float], count: int) -> dict[int, float]:
    """Returns the highest scores, highest first; ties are ordered by seq."""
    ranked = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
    return {seq: scores[seq] for seq in ranked[:count]}


def _rough(
    connection: sqlite3.Connection, embedding: Embedding, source: str, value: str
) -> dict[int, float]:
    """Returns the similarities of rough vectors, on the scale of the model."""
    if embedding.rough is None:
        return {}
    rows = connection.execute(f"SELECT r.chunk_seq, r.vector FROM {source}", (value,))
    cosines = _compare(rows, embedding.rough, "<f2")
    return {seq: scaled_cosine(cosine, embedding.floor) for seq, cosine in cosines.items()}


def _compare(rows: sqlite3.Cursor, vector: Vectors, stored_as: str) -> dict[int, float]:
    import numpy as np

    found: dict[int, float] = {}
    while some := rows.fetchmany(SLICE):
        seqs, vectors = zip(*some, strict=True)
        stored = np.frombuffer(b"".join(vectors), stored_as).astype(np.float32, copy=False)
        cosines = stored.reshape(len(some), -1) @ vector
        found.update(zip(seqs, cosines.tolist(), strict=True))
    return found


def check_dimensions(model: Model, vectors: Vectors) -> None:
    """Raises if new vectors cannot be compared with the stored ones."""
    found = int(vectors.shape[-1])
    if model.dimensions not in {None, found}:
        raise StorageUnavailableError(
            f"{model.scheme} now returns vectors of {found} numbers, but the stored ones have"
            f" {model.dimensions}. It is no longer the same model.",
            suggestions=(
                "Restore the old model, or set another embedder.model to embed everything again.",
            ),
        )


def take_over(connection: sqlite3.Connection) -> bool:
    """Makes the next model current if nothing waits for it; returns whether it did."""
    models = live_models(connection)
    if len(models) == 1:
        return False
    current, following = models
    waits = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM embed_queue WHERE model_seq = :next)"
        " OR EXISTS (SELECT 1 FROM vector_outbox WHERE model_seq = :next)",
        {"next": following.seq},
    ).fetchone()[0]
    if waits:
        return False
    _retire(connection, current)
    connection.execute("DELETE FROM rough_vectors")  # every chunk has a vector of the next model
    connection.execute("UPDATE models SET state = 'current' WHERE seq = ?", (following.seq,))
    return True


def _retire(connection: sqlite3.Connection, model: Model) -> None:
    """Retires a model; its vectors are removed later, in batches."""
    connection.execute("UPDATE models SET state = 'old' WHERE seq = ?", (model.seq,))
    connection.execute("DELETE FROM embed_queue WHERE model_seq = ?", (model.seq,))
    connection.execute("DELETE FROM vector_outbox WHERE model_seq = ?", (model.seq,))
