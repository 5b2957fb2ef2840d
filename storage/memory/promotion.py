"""Derives memories from entries, which are deleted with those entries.

Important entries become memories of layer 2: each is a copy of the newest such entry.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from hashlib import sha256

from storage.contexts.contexts import insert_whole, read_context, rewrite_context
from storage.contexts.ingestion import PreparedChunk, normalized, prepare
from storage.database import Database, View, Where, update_row
from storage.models import IMPORTANT, Context, ContextType, Entry, Identity, MemoryLayer, NewContext

PROMOTED = "entry"  # the raw_type of promoted entries

_TITLE_CHARACTERS = 200

_MATTERS = f"e.importance >= {IMPORTANT} AND e.is_recall = 0"
"""Must match the index `entries_that_matter` literally, or SQLite does not use the index."""

_OF_NO_MEMORY = (
    "NOT EXISTS (SELECT 1 FROM entry_contexts l JOIN memories m ON m.context_seq = l.context_seq"
    " WHERE l.entry_seq = e.seq)"
)
"""Excludes entries about memories, which exist already."""


TELLING = Where(
    "e.outcome = 'ok' AND (e.target <> '' OR e.arguments <> '{}' OR e.said <> '')"
    " AND NOT EXISTS (SELECT 1 FROM entry_contexts l"
    " JOIN memory_parts p ON p.memory_seq = l.context_seq"
    " WHERE l.entry_seq = e.seq)",
    (),
)
"""Matches rows of `entries AS e` that can be summarized or promoted: successes with content.

Entries about derived memories are excluded.
"""


def find_made(view: View, raw_type: str, raw_id: str) -> sqlite3.Row | None:
    """Returns `seq` and `sha256` of a derived memory of exactly this identity."""
    own = view.own("x")
    return view.row(
        f"SELECT x.seq, x.sha256 FROM contexts x WHERE {own.sql} AND x.raw_type = ?"
        " AND x.raw_id = ? AND EXISTS (SELECT 1 FROM memory_parts p WHERE p.memory_seq = x.seq)",
        (*own.values, raw_type, raw_id),
    )


def place(view: View, new: NewContext, chunks: Sequence[PreparedChunk]) -> int:
    """Writes a derived memory, over its earlier version if there is one; returns its seq."""
    known = find_made(view, new.raw_type, new.raw_id)
    if known is None:
        return insert_whole(view, new, chunks, time.time())[0]
    seq = int(known["seq"])
    rewrite_context(view, seq, new, chunks)
    update_row(view.connection, "memories", {"session_id": new.session_id}, {"context_seq": seq})
    return seq


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
        seq = place(View(connection, identity), new, chunks)
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


def persistable(
    connection: sqlite3.Connection, owner: Where, unused_seconds: float = UNUSED_SECONDS
) -> list[int]:
    """Returns the memories in layer 2 that are used often or long unused."""
    rows = connection.execute(
        "SELECT x.seq FROM memories m JOIN contexts x ON x.seq = m.context_seq"
        f" WHERE {owner.sql} AND m.layer = ?"
        f" AND (m.uses >= ? OR {LAST_TOUCHED} <= ?) ORDER BY x.seq",
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
