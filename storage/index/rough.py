"""Rough vectors: static ones, by which chunks of an import are found until their own are made.

They are part of the record and go when the chunk's own vector is stored. One ranking holds cosines
of both kinds: of questions and texts on three subjects, static cosines had nearly the same mean,
spread and highest values as those of the bundled model.
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

SLICE = 1000
"""Vectors in memory at once."""


@dataclass(frozen=True, slots=True)
class Rough:
    """A query's static vector.

    Attributes:
        vector: Of unit length.
        floor: That of the model whose cosines are answered.
    """

    vector: Vectors
    floor: float

    def similarities(
        self, connection: sqlite3.Connection, seqs: Collection[int]
    ) -> dict[int, float]:
        """Those of given chunks, where they have a rough vector: seq → cosine."""
        return self._compare(
            connection.execute(
                "SELECT r.chunk_seq, r.vector FROM json_each(?) j"
                " CROSS JOIN rough_vectors r ON r.chunk_seq = j.value",
                (json.dumps(list(seqs)),),
            )
        )

    def scan(self, connection: sqlite3.Connection, user_id: str) -> dict[int, float]:
        """Those of every chunk of a user that has a rough vector: seq → cosine."""
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
    """A rough vector as the record keeps it."""
    return bytes(vector.astype("<f2").tobytes())
