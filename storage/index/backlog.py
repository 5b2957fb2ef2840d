"""How much work waits in the record's queues."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

__all__ = ["Backlog", "read_backlog"]


@dataclass(frozen=True, slots=True)
class Backlog:
    """What the indexer has still to do, of everybody's.

    Attributes:
        words: Chunks that are not found by their words yet.
        embeddings: Vectors that are still to be made.
        vectors: News that the vector index has still to hear.
    """

    words: int
    embeddings: int
    vectors: int

    def __bool__(self) -> bool:
        return bool(self.words or self.embeddings or self.vectors)


def read_backlog(connection: sqlite3.Connection) -> Backlog:
    """What waits now."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM lexical_todo t"
        " JOIN chunks c ON c.seq BETWEEN t.first_seq AND t.last_seq),"
        " (SELECT count(*) FROM embed_queue), (SELECT count(*) FROM vector_outbox)"
    ).fetchone()
    return Backlog(*row)
