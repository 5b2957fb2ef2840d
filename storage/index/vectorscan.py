"""Exact similarities, from the vectors that the record keeps.

Similarities are seq → cosine; the vectors are of unit length.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from storage.index.meaning import Meaning

if TYPE_CHECKING:
    from storage.index.selection import Seqs

__all__ = ["best", "scan", "similarities", "undelivered"]

SLICE = 250
"""Vectors in memory at once: megabytes of them take several times longer, all in page faults."""


def similarities(
    connection: sqlite3.Connection, meaning: Meaning, seqs: Collection[int]
) -> dict[int, float]:
    """Those of given chunks, where they have a vector."""
    rows = connection.execute(
        "SELECT chunk_seq, vector FROM embeddings"
        " WHERE chunk_seq IN (SELECT value FROM json_each(?)) AND model_seq = ?",
        (json.dumps(list(seqs)), meaning.model),
    )
    return _compare(rows, meaning)


def scan(connection: sqlite3.Connection, meaning: Meaning, user_id: str) -> dict[int, float]:
    """Those of every chunk of a user."""
    rows = connection.execute(
        "SELECT c.seq, e.vector FROM chunks c JOIN embeddings e ON e.chunk_seq = c.seq"
        " WHERE c.user_id = ? AND e.model_seq = ?",
        (user_id, meaning.model),
    )
    return _compare(rows, meaning)


def undelivered(connection: sqlite3.Connection, model: int, user_id: str) -> Seqs:
    """A user's chunks whose vectors by a model the vector index has yet to hear of."""
    import numpy as np  # noqa: PLC0415  # imported on first use

    rows = connection.execute(
        "SELECT DISTINCT chunk_seq FROM vector_outbox WHERE model_seq = ? AND user_id = ?",
        (model, user_id),
    )
    return np.array([row[0] for row in rows], dtype=np.int64)


def best(scores: Mapping[int, float], count: int) -> dict[int, float]:
    """The highest scores, highest first; of equals the lowest seq."""
    ranked = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
    return {seq: scores[seq] for seq in ranked[:count]}


def _compare(rows: sqlite3.Cursor, meaning: Meaning) -> dict[int, float]:
    import numpy as np  # noqa: PLC0415  # imported on first use

    found: dict[int, float] = {}
    while some := rows.fetchmany(SLICE):
        seqs, vectors = zip(*some, strict=True)
        stored = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(some), -1)
        found.update(zip(seqs, (stored @ meaning.vector).tolist(), strict=True))
    return found
