"""Rough vectors: static ones, by which chunks of an import are found until they get their own.

They are in the record and are deleted when the chunk's own vector is stored. One ranking mixes
cosines of both kinds. For questions and texts on three subjects, static cosines had nearly the same
mean, spread and maximum as those of the bundled model.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.index.embedders.base import scaled_cosine

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

SLICE = 1000  # vectors in memory at once


@dataclass(frozen=True, slots=True)
class Rough:
    """A query's static vector."""

    vector: Vectors  # of unit length
    floor: float  # the floor of the model to whose scale cosines are converted

    def similarities(
        self, connection: sqlite3.Connection, seqs: Collection[int]
    ) -> dict[int, float]:
        """Returns the similarities of given chunks that have a rough vector: seq → cosine."""
        return self._compare(
            connection.execute(
                "SELECT r.chunk_seq, r.vector FROM json_each(?) j"
                " CROSS JOIN rough_vectors r ON r.chunk_seq = j.value",
                (json.dumps(list(seqs)),),
            )
        )

    def scan(self, connection: sqlite3.Connection, user_id: str) -> dict[int, float]:
        """Returns the similarities of all of a user's chunks with rough vectors: seq → cosine."""
        return self._compare(
            connection.execute(
                "SELECT chunk_seq, vector FROM rough_vectors WHERE user_id = ?", (user_id,)
            )
        )

    def _compare(self, rows: sqlite3.Cursor) -> dict[int, float]:
        import numpy as np

        found: dict[int, float] = {}
        while some := rows.fetchmany(SLICE):
            seqs, vectors = zip(*some, strict=True)
            stored = np.frombuffer(b"".join(vectors), dtype="<f2").reshape(len(some), -1)
            cosines = (stored.astype(np.float32) @ self.vector).tolist()
            found.update(
                (seq, scaled_cosine(cosine, self.floor))
                for seq, cosine in zip(seqs, cosines, strict=True)
            )
        return found


def as_bytes(vector: Vectors) -> bytes:
    """Serializes a rough vector as the record stores it."""
    return bytes(vector.astype("<f2").tobytes())
