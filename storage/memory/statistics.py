"""Counts each layer of memory, and what a consolidation would do."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from storage.database import identity_clause
from storage.memory.layers import persistable
from storage.memory.models import MemoryLayer
from storage.memory.promotion import promotable
from storage.memory.summaries import unsettled
from storage.models import Identity


@dataclass(frozen=True, slots=True)
class LayerStats:
    """The size of a layer."""

    count: int
    oldest: float | None  # Unix seconds of the oldest; None if it is empty
    newest: float | None  # Unix seconds of the newest


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """The sizes of all layers, and what a consolidation would do."""

    layers: Mapping[MemoryLayer, LayerStats]
    sessions: int
    promotable: int  # important entries without a memory
    unsummed: int  # sessions that ended without a current summary
    persistable: int  # memories of layer 2 that are used often, or long unused


def statistics(connection: sqlite3.Connection, identity: Identity, session_id: str) -> MemoryStats:
    """Counts what an identity sees."""
    layers = {layer: LayerStats(0, None, None) for layer in MemoryLayer}
    owner = identity_clause(identity, "e")
    layers[MemoryLayer.RECENT] = LayerStats(
        *connection.execute(
            f"SELECT count(*), min(e.time), max(e.time) FROM entries e WHERE {owner.sql}",
            owner.values,
        ).fetchone()
    )
    owner = identity_clause(identity, "x")
    for layer, *counts in connection.execute(
        "SELECT m.layer, count(*), min(x.event_time), max(x.event_time) FROM memories m"
        f" JOIN contexts x ON x.seq = m.context_seq WHERE {owner.sql} GROUP BY m.layer",
        owner.values,
    ):
        layers[MemoryLayer(layer)] = LayerStats(*counts)
    sessions = identity_clause(identity, "s")
    counted = connection.execute(
        f"SELECT count(*) FROM sessions s WHERE {sessions.sql}", sessions.values
    ).fetchone()
    return MemoryStats(
        layers=layers,
        sessions=int(counted[0]),
        promotable=len(promotable(connection, identity_clause(identity, "e"), -1)),
        unsummed=sum(1 for _ in unsettled(connection, sessions, but=session_id)),
        persistable=len(persistable(connection, owner)),
    )
