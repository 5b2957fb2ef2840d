"""The two queues of the record: texts that have no vector yet, and news for the vector index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.embedders.protocol import Vectors

__all__ = ["await_vectors", "keep_vector", "passage", "store_vector"]


def await_vectors(connection: sqlite3.Connection, user_id: str, chunk_seqs: Iterable[int]) -> None:
    """Queues chunks for embedding."""
    connection.executemany(
        "INSERT INTO embed_queue (chunk_seq, user_id) VALUES (?, ?)",
        ((seq, user_id) for seq in chunk_seqs),
    )


def store_vector(connection: sqlite3.Connection, chunk_seq: int, vector: Vectors) -> None:
    """Takes a chunk from the queue and keeps its vector.

    A chunk that was deleted meanwhile has left the queue: it is not brought back.
    """
    if connection.execute("DELETE FROM embed_queue WHERE chunk_seq = ?", (chunk_seq,)).rowcount:
        keep_vector(connection, chunk_seq, vector)


def keep_vector(connection: sqlite3.Connection, chunk_seq: int, vector: Vectors) -> None:
    """Keeps a chunk's vector and tells the vector index of it."""
    connection.execute(
        "INSERT OR REPLACE INTO embeddings (chunk_seq, vector) VALUES (?, ?)",
        (chunk_seq, vector.astype("<f4").tobytes()),
    )
    connection.execute(
        "INSERT INTO vector_outbox (chunk_seq, user_id) SELECT seq, user_id FROM chunks"
        " WHERE seq = ?",
        (chunk_seq,),
    )


def passage(title: str, heading: str, content: str) -> str:
    """What is embedded of a chunk, which reads differently under another title."""
    return "\n".join(part for part in (title, heading, content) if part)
