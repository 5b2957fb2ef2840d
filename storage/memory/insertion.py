"""How an entry of layer 1 comes in: into its session, weighed, and linked to what it tells of."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from storage.contexts.filters import exactly, identity_clause
from storage.memory.models import NewEntry
from storage.models import Identity

__all__ = ["insert", "whole"]

LINKS = 100
"""Contexts that one entry is linked to at most."""

MOST_REPEATS = 3
"""Earlier successes with the same target that raise an entry's importance, by 1 each."""

LED_TO_SECONDS = 600
"""How long after a message what is stored in its session is taken for what it said; the first that
is stored always is."""


def insert(connection: sqlite3.Connection, identity: Identity, new: NewEntry) -> int:
    """Adds an entry to its session, linked to what it tells of, and answers with its seq."""
    _keep_session(connection, identity, new)
    known = _known(connection, identity, new.context_ids)
    if new.context_ids and not known and not new.is_recall:  # what it stored is forgotten already
        new = replace(new, target="", arguments={}, said="")
    row: dict[str, object] = {
        "user_id": identity.user_id,
        "device_id": identity.device_id,
        "agent_id": identity.agent_id,
        "session_id": whole(new.session_id),
        "kind": new.kind,
        "time": new.time,
        "action": whole(new.action),
        "target": whole(new.target),
        "arguments": whole(json.dumps(dict(new.arguments), ensure_ascii=False)),
        "outcome": whole(new.outcome),
        "said": whole(new.said),
        "milliseconds": new.milliseconds,
        "importance": min(10.0, new.importance + _repeats(connection, identity, new)),
        "is_recall": new.is_recall,
    }
    cursor = connection.execute(
        f"INSERT INTO entries ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )
    seq = int(cursor.lastrowid or 0)
    if known:
        _link(connection, identity, new, seq, known)
    if new.read_ids:
        connection.executemany(
            "UPDATE memories SET uses = uses + 1, last_used = max(coalesce(last_used, 0), ?)"
            " WHERE context_seq = ?",
            ((new.time, seq) for seq in _known(connection, identity, new.read_ids)),
        )
    return seq


def _keep_session(connection: sqlite3.Connection, identity: Identity, new: NewEntry) -> None:
    connection.execute(
        "INSERT INTO sessions (id, user_id, device_id, agent_id, client, start_time, last_time)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " client = CASE WHEN excluded.client = '' THEN client ELSE excluded.client END,"
        " start_time = min(start_time, excluded.start_time),"
        " last_time = max(last_time, excluded.last_time)",
        (
            whole(new.session_id),
            identity.user_id,
            identity.device_id,
            identity.agent_id,
            whole(new.client),
            new.time,
            new.time,
        ),
    )


def _repeats(connection: sqlite3.Connection, identity: Identity, new: NewEntry) -> int:
    """Earlier successes with the same target in the session, as many as count."""
    if not new.target:
        return 0
    whose = exactly(identity, "e")
    row = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM entries e WHERE {whose.sql} AND e.target = ?"
        " AND e.session_id = ? AND e.outcome = 'ok' LIMIT ?)",
        (*whose.values, whole(new.target), whole(new.session_id), MOST_REPEATS),
    ).fetchone()
    return int(row[0])


def _link(
    connection: sqlite3.Connection, identity: Identity, new: NewEntry, seq: int, known: list[int]
) -> None:
    """Links an entry to the contexts it tells of, and so the messages that had them stored."""
    tellers = [seq] if new.is_recall else [seq, *_messages(connection, identity, new)]
    connection.executemany(
        "INSERT OR IGNORE INTO entry_contexts (entry_seq, context_seq) VALUES (?, ?)",
        ((teller, context) for teller in tellers for context in known),
    )


def _messages(connection: sqlite3.Connection, identity: Identity, new: NewEntry) -> list[int]:
    whose = exactly(identity, "e")
    rows = connection.execute(
        f"SELECT e.seq FROM entries e WHERE {whose.sql} AND e.session_id = ?"
        " AND e.kind = 'message' AND NOT e.is_recall"
        " AND (e.time >= ? OR NOT EXISTS"
        " (SELECT 1 FROM entry_contexts l WHERE l.entry_seq = e.seq)) ORDER BY e.seq DESC LIMIT ?",
        (*whose.values, whole(new.session_id), new.time - LED_TO_SECONDS, LINKS),
    )
    return [int(row[0]) for row in rows]


def _known(
    connection: sqlite3.Connection, identity: Identity, context_ids: Sequence[str]
) -> list[int]:
    """Those of some contexts that are there and that the identity sees."""
    if not context_ids:
        return []
    whose = identity_clause(identity, "x")
    rows = connection.execute(
        f"SELECT x.seq FROM contexts x WHERE {whose.sql}"
        " AND x.id IN (SELECT value FROM json_each(?))",
        (*whose.values, json.dumps(context_ids[:LINKS])),
    )
    return [int(row[0]) for row in rows]


def whole(text: str) -> str:
    """The text with each half of a surrogate pair replaced: SQLite keeps UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")
