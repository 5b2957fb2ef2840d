"""The two queues of the record: texts that have no vector yet, and news for the vector index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from storage.index.embedding_models import Embedding

__all__ = ["await_vectors", "keep_vector", "store_vector"]


def await_vectors(connection: sqlite3.Connection, user_id: str, chunk_seqs: Iterable[int]) -> None:
    """Queues chunks for embedding, by the current model and by the next where there is one."""
    connection.executemany(
        "INSERT INTO embed_queue (chunk_seq, model_seq, user_id)"
        " SELECT ?, seq, ? FROM models WHERE state <> 'old'",
        ((seq, user_id) for seq in chunk_seqs),
    )


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
