"""Exact similarities, from the vectors that the record keeps.

Each function answers with seq → cosine similarity; the vectors are of unit length.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from storage.filters import Where

if TYPE_CHECKING:
    from storage.embedders.protocol import Vectors

__all__ = ["best", "scan", "similarities", "undelivered"]

_SELECT = (
    "SELECT c.seq, e.vector FROM chunks c JOIN contexts x ON x.seq = c.context_seq"
    " JOIN embeddings e ON e.chunk_seq = c.seq"
)
_ANY = Where("TRUE", ())


def similarities(
    connection: sqlite3.Connection, vector: Vectors, seqs: Collection[int], where: Where = _ANY
) -> dict[int, float]:
    """Those of given chunks, where they have a vector and fit the condition."""
    rows = connection.execute(
        f"{_SELECT} WHERE c.seq IN (SELECT value FROM json_each(?)) AND {where.sql}",
        (json.dumps(list(seqs)), *where.values),
    )
    return _compare(rows, vector)


def undelivered(connection: sqlite3.Connection, vector: Vectors, where: Where) -> dict[int, float]:
    """Those of chunks that the vector index has yet to hear of."""
    rows = connection.execute(
        f"{_SELECT} WHERE c.seq IN (SELECT chunk_seq FROM vector_outbox) AND {where.sql}",
        where.values,
    )
    return _compare(rows, vector)


def scan(connection: sqlite3.Connection, vector: Vectors, where: Where) -> dict[int, float]:
    """Those of every chunk whose context fits the condition."""
    return _compare(connection.execute(f"{_SELECT} WHERE {where.sql}", where.values), vector)


def best(scores: Mapping[int, float], count: int) -> dict[int, float]:
    """The highest scores, highest first."""
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:count])


def _compare(rows: sqlite3.Cursor, vector: Vectors) -> dict[int, float]:
    import numpy as np  # noqa: PLC0415  # imported on first use

    found = rows.fetchall()
    if not found:
        return {}
    stored = np.frombuffer(b"".join(row[1] for row in found), dtype="<f4")
    scores = stored.reshape(len(found), -1) @ vector
    return {int(row[0]): float(score) for row, score in zip(found, scores, strict=True)}
