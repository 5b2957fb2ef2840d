"""The models whose vectors the record keeps: the current one, and the next one that takes over.

Searches compare by the current model. When the settings want another one, it becomes the next:
every chunk is queued for it, and what is added is queued for both. Once nothing waits for it any
more it becomes the current one, and the vectors of the old one are removed. Several processes work
on one record, some perhaps with the settings of yesterday, so each asks the record every time.

The exact similarities of stored vectors are seq → cosine; the vectors are of unit length.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.database import Database
from storage.errors import StorageUnavailableError
from storage.index.embed_queue import Priority
from storage.index.embedders.base import DEFAULT_FLOOR, CachingEmbedder, Embedder
from storage.index.rough import Rough

if TYPE_CHECKING:
    from storage.contexts.filters import Seqs
    from storage.index.embedders.base import Vectors

SLICE = 250
"""Vectors in memory at once: megabytes of them take several times longer, all in page faults."""

MakeEmbedder = Callable[[str], Embedder | None]
"""Makes the embedder with a model_id, or None where the settings do not describe it."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the record.

    Attributes:
        seq: Its number, never given again.
        scheme: The model_id of its embedder.
        state: "current", "next", or "old" until its vectors are removed.
        dimensions: Length of its vectors; None until there is one.
    """

    seq: int
    scheme: str
    state: str
    dimensions: int | None


@dataclass(frozen=True, slots=True)
class Embedding:
    """A vector, and the model that it can be compared by.

    Attributes:
        model: The model's number.
        vector: Of unit length.
        floor: Cosine below which texts have nothing to do with each other, by this model.
        rough: By what chunks that wait for their vectors are compared, if at all.
    """

    model: int
    vector: Vectors
    floor: float = DEFAULT_FLOOR
    rough: Rough | None = None

    @classmethod
    def of_query(cls, model: Model, embedder: Embedder, text: str) -> Embedding:
        """What a query means."""
        vector = embedder.embed_query(text)
        check_dimensions(model, vector)
        return cls(model.seq, vector, embedder.floor)

    @classmethod
    def of_passages(cls, model: Model, embedder: Embedder, texts: Sequence[str]) -> list[Embedding]:
        """What each passage means."""
        vectors = embedder.embed_passages(texts)
        check_dimensions(model, vectors)
        return [cls(model.seq, vector, embedder.floor) for vector in vectors]


class Models:
    """The models of one record, and the embedders that make their vectors.

    Args:
        database: The record.
        wanted: The embedder of the settings, which becomes the next model where it is not the
            current one.
        make: Makes the embedders of other models.

    Raises:
        StorageUnavailableError: If the record cannot be written.
    """

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
        """The model that searches compare by, and its embedder."""
        with self._database.read() as connection:
            (model, *_) = live_models(connection)
        return model, self.embedder(model)

    def embedder(self, model: Model) -> Embedder:
        """The embedder of a model; it remembers recent queries."""
        known = self._embedders.get(model.scheme)
        if known is None:
            made = self._make(model.scheme)
            if made is None:
                raise StorageUnavailableError(
                    f"The vectors that are stored were made by {model.scheme}, which the settings"
                    f" of this process do not describe; they want {self._wanted}.",
                    suggestions=("Searches go by words until everything is embedded again.",),
                )
            known = self._embedders.setdefault(model.scheme, CachingEmbedder(made))
        return known

    def _is_chosen(self, connection: sqlite3.Connection) -> bool:
        schemes = [model.scheme for model in live_models(connection)]
        return schemes[-1:] == [self._wanted]

    def _choose(self, connection: sqlite3.Connection) -> None:
        """Makes the wanted model the one that takes over, if it is not the current one."""
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
            " SELECT seq, ?, user_id, ? FROM chunks",
            (seq, Priority.LATER if models else Priority.ROUGH),
        )


def passage(title: str, heading: str, content: str, before: str = "") -> str:
    """What is embedded of a chunk, which reads differently under another title.

    Args:
        title: Of its context.
        heading: What stands over it.
        content: Its text.
        before: What was said before it, where it is a turn: alone it may say very little.
    """
    return "\n".join(part for part in (title, before, heading, content) if part)


def live_models(connection: sqlite3.Connection) -> list[Model]:
    """The current model and, where there is one, the next."""
    rows = connection.execute(
        "SELECT seq, scheme, state, dimensions FROM models WHERE state <> 'old' ORDER BY state"
    )
    return [Model(*row) for row in rows]


def old_models(connection: sqlite3.Connection) -> list[Model]:
    """Those whose vectors are to be removed."""
    rows = connection.execute(
        "SELECT seq, scheme, state, dimensions FROM models WHERE state = 'old'"
    )
    return [Model(*row) for row in rows]


def store_vector(connection: sqlite3.Connection, chunk_seq: int, embedding: Embedding) -> None:
    """Takes a chunk from a model's queue and keeps its vector.

    A chunk that was deleted meanwhile has left the queue, and so have all where the model went out
    of use: they are not brought back.
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
    """Keeps a chunk's vector, if its model is in use, and tells the vector index of it."""
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
        "INSERT INTO vector_outbox (chunk_seq, model_seq, user_id)"
        " SELECT seq, ?, user_id FROM chunks WHERE seq = ?",
        (embedding.model, chunk_seq),
    )


def similarities(
    connection: sqlite3.Connection, embedding: Embedding, seqs: Collection[int]
) -> dict[int, float]:
    """Those of given chunks, where they have a vector; rough ones where wanted."""
    rows = connection.execute(
        "SELECT chunk_seq, vector FROM embeddings"
        " WHERE chunk_seq IN (SELECT value FROM json_each(?)) AND model_seq = ?",
        (json.dumps(list(seqs)), embedding.model),
    )
    rough = {} if embedding.rough is None else embedding.rough.similarities(connection, seqs)
    return rough | _compare(rows, embedding)


def scan(connection: sqlite3.Connection, embedding: Embedding, user_id: str) -> dict[int, float]:
    """Those of every chunk of a user; rough ones where wanted."""
    rows = connection.execute(
        "SELECT c.seq, e.vector FROM chunks c JOIN embeddings e ON e.chunk_seq = c.seq"
        " WHERE c.user_id = ? AND e.model_seq = ?",
        (user_id, embedding.model),
    )
    rough = {} if embedding.rough is None else embedding.rough.scan(connection, user_id)
    return rough | _compare(rows, embedding)


def undelivered(connection: sqlite3.Connection, embedding: Embedding, user_id: str) -> Seqs:
    """A user's chunks that have a vector to be compared by and are not in the vector index yet."""
    import numpy as np

    rows = connection.execute(
        "SELECT chunk_seq FROM vector_outbox WHERE model_seq = :model AND user_id = :user"
        " UNION SELECT chunk_seq FROM rough_vectors WHERE user_id = :user AND :rough",
        {"model": embedding.model, "user": user_id, "rough": embedding.rough is not None},
    )
    return np.array([row[0] for row in rows], dtype=np.int64)


def nearest_first(scores: Mapping[int, float], count: int) -> dict[int, float]:
    """The highest scores, highest first; of equals the lowest seq."""
    ranked = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
    return {seq: scores[seq] for seq in ranked[:count]}


def _compare(rows: sqlite3.Cursor, embedding: Embedding) -> dict[int, float]:
    import numpy as np

    found: dict[int, float] = {}
    while some := rows.fetchmany(SLICE):
        seqs, vectors = zip(*some, strict=True)
        stored = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(some), -1)
        found.update(zip(seqs, (stored @ embedding.vector).tolist(), strict=True))
    return found


def check_dimensions(model: Model, vectors: Vectors) -> None:
    """Sees that new vectors can be compared with those that are kept."""
    found = int(vectors.shape[-1])
    if model.dimensions not in {None, found}:
        raise StorageUnavailableError(
            f"{model.scheme} gives vectors of {found} numbers now; those that are stored have"
            f" {model.dimensions}. It is no longer the same model.",
            suggestions=(
                "Restore the old model, or set another embedder.model to embed everything again.",
            ),
        )


def take_over(connection: sqlite3.Connection) -> bool:
    """Makes the next model the current one if nothing waits for it; whether it did."""
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
    connection.execute("DELETE FROM rough_vectors")  # every chunk has its own by the next
    connection.execute("UPDATE models SET state = 'current' WHERE seq = ?", (following.seq,))
    return True


def _retire(connection: sqlite3.Connection, model: Model) -> None:
    """Takes a model out of use; its vectors are removed later, a batch at a time."""
    connection.execute("UPDATE models SET state = 'old' WHERE seq = ?", (model.seq,))
    connection.execute("DELETE FROM embed_queue WHERE model_seq = ?", (model.seq,))
    connection.execute("DELETE FROM vector_outbox WHERE model_seq = ?", (model.seq,))
