"""Memories derived from entries, which are deleted with those entries."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from storage.contexts.contexts import insert_whole, update_context
from storage.contexts.ingestion import PreparedChunk, insert_chunks
from storage.database import Where, exactly
from storage.models import Identity, NewContext

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


def find_made(
    connection: sqlite3.Connection, identity: Identity, raw_type: str, raw_id: str
) -> sqlite3.Row | None:
    """Returns `seq` and `sha256` of a derived memory of exactly this identity."""
    owner = exactly(identity, "x")
    row: sqlite3.Row | None = connection.execute(
        f"SELECT x.seq, x.sha256 FROM contexts x WHERE {owner.sql} AND x.raw_type = ?"
        " AND x.raw_id = ? AND EXISTS (SELECT 1 FROM memory_parts p WHERE p.memory_seq = x.seq)",
        (*owner.values, raw_type, raw_id),
    ).fetchone()
    return row


def place(
    connection: sqlite3.Connection,
    identity: Identity,
    new: NewContext,
    chunks: Sequence[PreparedChunk],
) -> int:
    """Writes a derived memory, over its earlier version if there is one, and returns its seq.

    The caller records what it was derived from.
    """
    known = find_made(connection, identity, new.raw_type, new.raw_id)
    if known is None:
        return insert_whole(connection, identity, new, chunks, time.time())[0]
    seq = int(known["seq"])
    update_context(connection, seq, new, merge_count=0)
    connection.execute(
        "UPDATE memories SET session_id = ? WHERE context_seq = ?", (new.session_id, seq)
    )
    connection.execute("DELETE FROM chunks WHERE context_seq = ?", (seq,))
    insert_chunks(connection, seq, identity.user_id, chunks)
    return seq
