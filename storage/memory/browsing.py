"""Lists memories, each by a permanent number, and counts each layer."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.contexts.contexts import chunks_of, read_context
from storage.database import Where, identity_clause
from storage.memory.promotion import LAST_TOUCHED, persistable, promotable, weight
from storage.memory.summaries import unsettled
from storage.models import Context, Identity, MemoryLayer, whole_text

_OPENING_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as it is listed."""

    number: int  # identifies it permanently within this library
    context: Context
    opening: str
    session_id: str
    uses: int
    last_used: float | None  # Unix seconds; None means never
    weight: float  # see `storage.memory.promotion.weight`


def of_layer(  # noqa: PLR0913  # each is a filter
    connection: sqlite3.Connection,
    owner: Where,
    layer: MemoryLayer,
    *,
    limit: int,
    offset: int = 0,
    session_id: str | None = None,
) -> list[Memory]:
    """Returns the memories of a layer: layer 2 by weight, others newest first."""
    parts = [owner, Where("m.layer = ?", (layer,))]
    if session_id is not None:
        parts.append(of_session(session_id))
    if layer is not MemoryLayer.IMPORTANT:  # layer 4 grows without end, so SQLite sorts it
        return _memories(connection, _rows(connection, parts, limit, offset))
    rows = _rows(connection, parts)
    rows.sort(key=_weight, reverse=True)
    return _memories(connection, rows[offset : offset + limit])


def find(connection: sqlite3.Connection, owner: Where, wanted: Where) -> list[Memory]:
    """Returns memories, newest first; the conditions are on `contexts AS x` and `memories AS m`."""
    return _memories(connection, _rows(connection, [owner, wanted]))


def by_numbers(numbers: Sequence[int], layer: MemoryLayer | None = None) -> Where:
    """Returns the condition for memories with these numbers, optionally of a layer."""
    numbered = Where("x.seq IN (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),))
    if layer is None:
        return numbered
    return Where(f"m.layer = ? AND {numbered.sql}", (layer, *numbered.values))


def unused(layer: MemoryLayer, since: float) -> Where:
    """Returns the condition for memories of a layer neither changed nor used since."""
    return Where(f"m.layer = ? AND {LAST_TOUCHED} <= ?", (layer, since))


def by_ids(ids: Sequence[str]) -> Where:
    """Returns the condition for memories with these ids."""
    return Where("x.id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))


def of_session(session_id: str) -> Where:
    """Returns the condition for memories of this session."""
    return Where("m.session_id = ?", (session_id,))


def made_from(entries: Sequence[int]) -> Where:
    """Returns the condition for memories made from one of these entries."""
    return Where(
        "x.seq IN (SELECT p.memory_seq FROM memory_parts p"
        " WHERE p.entry_seq IN (SELECT value FROM json_each(?)))",
        (json.dumps(list(entries)),),
    )


def text_of(connection: sqlite3.Connection, memory: Memory) -> str:
    """Returns the whole text of a memory."""
    return whole_text(chunks_of(connection, memory.number))


def _rows(
    connection: sqlite3.Connection, parts: Sequence[Where], limit: int = -1, offset: int = 0
) -> list[sqlite3.Row]:
    where = Where.every(parts)
    return connection.execute(
        "SELECT x.seq, x.importance, x.update_time, m.session_id, m.uses, m.last_used,"
        " (SELECT substr(c.content, 1, ?) FROM chunks c WHERE c.context_seq = x.seq"
        " AND c.position = 0) AS opening"
        f" FROM memories m JOIN contexts x ON x.seq = m.context_seq WHERE {where.sql}"
        " ORDER BY CASE m.layer WHEN 3 THEN x.event_time ELSE x.update_time END DESC, x.seq DESC"
        " LIMIT ? OFFSET ?",
        (_OPENING_CHARACTERS, *where.values, limit, offset),
    ).fetchall()


def _memories(connection: sqlite3.Connection, rows: Sequence[sqlite3.Row]) -> list[Memory]:
    return [
        Memory(
            number=row["seq"],
            context=read_context(connection, row["seq"]),
            weight=_weight(row),
            **{name: row[name] for name in ("opening", "session_id", "uses", "last_used")},
        )
        for row in rows
    ]


def _weight(row: sqlite3.Row) -> float:
    used = max(row["last_used"] or 0.0, row["update_time"])
    return weight(row["importance"], row["uses"], used, time.time())


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
    calls, owner = identity_clause(identity, "e"), identity_clause(identity, "x")
    layers[MemoryLayer.RECENT] = LayerStats(
        *connection.execute(
            f"SELECT count(*), min(e.time), max(e.time) FROM entries e WHERE {calls.sql}",
            calls.values,
        ).fetchone()
    )
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
        promotable=len(promotable(connection, calls, -1)),
        unsummed=sum(1 for _ in unsettled(connection, sessions, but=session_id)),
        persistable=len(persistable(connection, owner)),
    )
