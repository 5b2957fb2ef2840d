"""The vector cache: the vectors of recent users in memory, for the comparison at each write.

It follows the record by the rowids of `embeddings`, which increase: the next vector gets the
highest rowid plus one. As long as a user's last vector is where it was, every later one has a
higher rowid. Otherwise, as after a deletion of the last one or a VACUUM, all are read again.
Deleted and replaced vectors stay until then, so what is found must be looked up in the record.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage.database import View
from storage.index.embedding_models import Embedding

if TYPE_CHECKING:
    from storage.contexts.filters import Seqs

MOST_CACHED = 10_000  # vectors of one user; 15 MB in the default model
MOST_BYTES = 24_000_000  # of the vectors of all users
_ROUNDING = 1e-4  # products of whole matrices differ by less from those of the record's slices


@dataclass(slots=True)
class _Held:
    """The vectors of one user, in one model."""

    vectors: bytearray = field(default_factory=bytearray)
    seqs: array[int] = field(default_factory=lambda: array("q"))  # of their chunks
    last: int = 0  # the highest rowid
    last_vector: bytes = b""

    def is_followed_by(self, connection: sqlite3.Connection) -> bool:
        """Returns whether the record only has further vectors, and few of these are outdated."""
        row = connection.execute(
            "SELECT vector FROM embeddings WHERE rowid = ? AND chunk_seq = ?",
            (self.last, self.seqs[-1]),
        ).fetchone()
        is_there = row is not None and row[0] == self.last_vector
        return is_there and len(self.seqs) <= 2 * MOST_CACHED

    def extend(self, connection: sqlite3.Connection, user_id: str, model: int) -> None:
        """Reads the vectors that follow."""
        tables = "embeddings e CROSS JOIN chunks c" if self.last else "chunks c JOIN embeddings e"
        rows = connection.execute(
            f"SELECT e.rowid, c.seq, e.vector FROM {tables} ON c.seq = e.chunk_seq"
            " WHERE e.rowid > ? AND e.model_seq = ? AND c.user_id = ? ORDER BY e.rowid",
            (self.last, model, user_id),
        )
        for rowid, seq, vector in rows:
            self.last, self.last_vector = rowid, vector
            self.seqs.append(seq)
            self.vectors += vector


class VectorCache:
    """Finds a user's vectors that are similar to another, without reading all from the record."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._held: dict[tuple[str, int], _Held] = {}  # used longest ago first

    def near(self, view: View, embedding: Embedding, least: float) -> Seqs:
        """Returns at least all of the user's chunks that are at least this similar."""
        import numpy as np

        with self._turn:
            place = view.user_id, embedding.model
            held = self._held.pop(place, None)
            if held is None or not held.is_followed_by(view.connection):
                held = _Held()
            held.extend(view.connection, *place)
            vectors = np.frombuffer(held.vectors, "<f4").reshape(-1, len(embedding.vector))
            alike = np.flatnonzero(vectors @ embedding.vector >= least - _ROUNDING)
            found: Seqs = np.unique(np.frombuffer(held.seqs, np.int64)[alike])
            if held.seqs:
                self._held[place] = held
            while sum(len(each.vectors) for each in self._held.values()) > MOST_BYTES:
                del self._held[next(iter(self._held))]
        return found
