"""Layers: where a memory is, how it moves, and its weight."""

from __future__ import annotations

import sqlite3
import time

from storage.database import Where
from storage.memory.models import MemoryLayer

UNUSED_SECONDS = 30 * 86_400.0
"""Seconds that an unused memory stays in layer 2; also the half-life of freshness."""

MUCH_USED = 5
"""Uses after which a memory of layer 2 is established; also the uses that weigh half a point."""


LAST_TOUCHED = "max(coalesce(m.last_used, 0), x.update_time)"
"""SQL for the time when one of `memories AS m`, the context `x`, was last used or changed."""


def weight(importance: float, uses: int, used: float, now: float) -> float:
    """Returns the weight of a memory of layer 2, 0 to 12.

    It is the importance, plus up to a point for freshness, halved every 30 days, plus up to a point
    for use, half of it at 5 uses. Importance and exponential recency are added as in generative
    agents (Park et al. 2023, https://arxiv.org/abs/2304.03442, 4.1). Here the stated importance
    dominates; the others decide between memories of about the same importance. `used` is the time
    of its last use, or else of its last change.
    """
    freshness = 0.5 ** (max(now - used, 0.0) / UNUSED_SECONDS)
    return float(importance + freshness + uses / (uses + MUCH_USED))


def raise_layer(connection: sqlite3.Connection, seq: int) -> None:
    """Moves a memory of layer 4 to layer 2 and resets its uses."""
    connection.execute(
        "UPDATE memories SET layer = ?, uses = 0, last_used = ?"
        " WHERE context_seq = ? AND layer = ?",
        (MemoryLayer.IMPORTANT, time.time(), seq, MemoryLayer.SEMANTIC),
    )


_OF_FAILURE = (
    "(x.raw_type = 'entry' AND x.merge_count = 0 AND json_extract(x.metadata, '$.outcome') <> 'ok')"
)
"""Matches memories that an earlier version promoted from failed calls, and that never changed."""


def persistable(
    connection: sqlite3.Connection, owner: Where, unused_seconds: float = UNUSED_SECONDS
) -> list[int]:
    """Returns the seqs of memories in layer 2 that are used often, long unused, or failures.

    `owner` is a condition on `contexts AS x`.
    """
    rows = connection.execute(
        "SELECT x.seq FROM memories m JOIN contexts x ON x.seq = m.context_seq"
        f" WHERE {owner.sql} AND m.layer = ?"
        f" AND (m.uses >= ? OR {LAST_TOUCHED} <= ? OR {_OF_FAILURE}) ORDER BY x.seq",
        (*owner.values, MemoryLayer.IMPORTANT, MUCH_USED, time.time() - unused_seconds),
    )
    return [int(row[0]) for row in rows]


def persist(connection: sqlite3.Connection, seqs: list[int]) -> list[int]:
    """Moves memories of layer 2 to layer 4, and returns those that moved."""
    return [
        seq
        for seq in seqs
        if connection.execute(
            "UPDATE memories SET layer = ? WHERE context_seq = ? AND layer = ?",
            (MemoryLayer.SEMANTIC, seq, MemoryLayer.IMPORTANT),
        ).rowcount
    ]
