"""Promotion: turns important entries of layer 1 into memories of layer 2."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from hashlib import sha256

from storage.contexts.contexts import read_context
from storage.contexts.ingestion import normalized, prepare
from storage.database import Database, Where
from storage.memory.derived import TELLING, place
from storage.memory.models import IMPORTANT, Entry, MemoryLayer
from storage.models import Context, ContextType, Identity, NewContext

PROMOTED = "entry"
"""The raw_type of promoted entries."""

_TITLE_CHARACTERS = 200

_MATTERS = f"e.importance >= {IMPORTANT} AND e.is_recall = 0"
"""Must match the index `entries_that_matter` literally, or SQLite does not use the index."""

_OF_NO_MEMORY = (
    "NOT EXISTS (SELECT 1 FROM entry_contexts l JOIN memories m ON m.context_seq = l.context_seq"
    " WHERE l.entry_seq = e.seq)"
)
"""Excludes entries about memories, which exist already."""


def promotable(connection: sqlite3.Connection, owner: Where, limit: int) -> list[tuple[str, int]]:
    """Returns the important entries without a memory, oldest first.

    Of entries with the same action and target only the newest counts. Recalls are excluded. `owner`
    is a condition on `entries AS e`. Returns the user and the seq of each.
    """
    rows = connection.execute(
        "SELECT n.user_id, n.seq FROM (SELECT e.user_id, max(e.seq) AS seq FROM entries e"
        f" WHERE {owner.sql} AND {_MATTERS} AND {TELLING.sql}"
        f" AND {_OF_NO_MEMORY} GROUP BY e.user_id, e.device_id, e.agent_id, e.action, e.target) n"
        " WHERE NOT EXISTS"
        " (SELECT 1 FROM memory_parts p WHERE p.entry_seq = n.seq AND p.is_copy)"
        " ORDER BY n.seq LIMIT ?",
        (*owner.values, limit),
    )
    return [(row["user_id"], row["seq"]) for row in rows]


def promote(
    database: Database, user_id: str, entries: Sequence[Entry], *, named: bool
) -> list[Context]:
    """Makes a memory of layer 2 of each entry; the entries stay.

    Entries that are memories already are skipped. A newer entry replaces the memory of an older one
    with the same action and target, unless the entries were named. Returns the new and changed
    memories.
    """
    made = (_promote(database, user_id, entry, named=named) for entry in entries)
    return [each for each in made if each is not None]


def _promote(database: Database, user_id: str, entry: Entry, *, named: bool) -> Context | None:
    new = _memory(entry, named=named)
    chunks = prepare(new)
    identity = Identity(user_id, entry.device_id, entry.agent_id)
    with database.write() as connection:
        if not _is_due(connection, entry.seq):
            return None
        seq = place(connection, identity, new, chunks)
        moved = connection.execute(
            "UPDATE memory_parts SET entry_seq = ? WHERE memory_seq = ?", (entry.seq, seq)
        )
        if not moved.rowcount:
            connection.execute(
                "INSERT INTO memory_parts (memory_seq, entry_seq, is_copy) VALUES (?, ?, 1)",
                (seq, entry.seq),
            )
        return read_context(connection, seq)


def _is_due(connection: sqlite3.Connection, seq: int) -> bool:
    row = connection.execute(
        f"SELECT 1 FROM entries e WHERE e.seq = ? AND {TELLING.sql} AND {_OF_NO_MEMORY}"
        " AND NOT EXISTS (SELECT 1 FROM memory_parts p WHERE p.entry_seq = e.seq AND p.is_copy)",
        (seq,),
    ).fetchone()
    return row is not None


def _memory(entry: Entry, *, named: bool) -> NewContext:
    key = f"{entry.action}\0{entry.target}" + f"\0{entry.seq}" * named
    return normalized(
        NewContext(
            context_type=ContextType.KNOWLEDGE,
            title=" ".join(f"{entry.action} {entry.target}".split())[:_TITLE_CHARACTERS],
            text=entry.text,
            importance=max(entry.importance, IMPORTANT),
            event_time=entry.time,
            metadata={"action": entry.action, "outcome": entry.outcome},
            raw_type=PROMOTED,
            raw_id=sha256(key.encode()).hexdigest(),
            memory_layer=MemoryLayer.IMPORTANT,
            session_id=entry.session_id,
        )
    )
