"""Sessions of an export and what was called and said in them, stored again."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import asdict

from storage.contexts.ingestion import as_json
from storage.database import exactly
from storage.keeping.records import EntryRecord, SessionRecord
from storage.keeping.rows import Outcome, insert_row, update_row
from storage.models import Identity

Moment = tuple[float, str, str]
"""When an entry was, its kind and its action: what makes it the same in its session."""


class EntryImporter:
    """Stores the sessions and entries of one export.

    Args:
        identity: Whose everything is to be; None leaves each record its own.
        contexts: The seqs of the contexts that were taken before, by their ids in the export.
    """

    def __init__(self, identity: Identity | None, contexts: Mapping[str, int]) -> None:
        self._identity = identity
        self._contexts = contexts
        self._stored: dict[tuple[Identity, str], dict[Moment, list[int]]] = {}
        self._last = 0
        self.seqs: dict[int, int] = {}

    def add_session(self, connection: sqlite3.Connection, record: SessionRecord) -> Outcome:
        """Stores a session; of one that went on the later end."""
        identity = self._identity or record.identity
        key = {"id": record.id, **asdict(identity)}
        values = record.model_dump(include={"client", "start_time", "last_time", "told_until"})
        owner = exactly(identity, "s")
        row = connection.execute(
            f"SELECT s.start_time, s.last_time FROM sessions s WHERE {owner.sql} AND s.id = ?",
            (*owner.values, record.id),
        ).fetchone()
        if row is None:
            insert_row(connection, "sessions", key | values)
            return "added"
        if row["last_time"] >= record.last_time:
            return "unchanged"
        values["start_time"] = min(row["start_time"], record.start_time)
        update_row(connection, "sessions", values, key)
        return "replaced"

    def add_entry(self, connection: sqlite3.Connection, record: EntryRecord) -> Outcome:
        """Stores an entry, under its id where that is free; one that is stored stays as it is."""
        identity = self._identity or record.identity
        outcome: Outcome = "unchanged"
        seq = self._claim(connection, identity, record)
        if seq is None:
            outcome = "added"
            row = {"seq": self._free_seq(connection, record.id), **_row(identity, record)}
            seq = self._last = insert_row(connection, "entries", row)
        self.seqs[record.id] = seq
        connection.executemany(
            "INSERT OR IGNORE INTO entry_contexts (entry_seq, context_seq) VALUES (?, ?)",
            ((seq, self._contexts[each]) for each in record.context_ids if each in self._contexts),
        )
        return outcome

    def _claim(
        self, connection: sqlite3.Connection, identity: Identity, record: EntryRecord
    ) -> int | None:
        """The entry that is this one, which no other record is then."""
        session = (identity, record.session_id)
        if session not in self._stored:
            self._stored[session] = _moments(connection, *session)
        same = self._stored[session].get((record.time, record.kind, record.action))
        if not same:
            return None
        return same.pop(same.index(record.id) if record.id in same else 0)

    def _free_seq(self, connection: sqlite3.Connection, seq: int) -> int | None:
        """A seq, if it is free and comes after those before it: they are in order of time."""
        taken = connection.execute("SELECT 1 FROM entries WHERE seq = ?", (seq,)).fetchone()
        return None if taken or seq <= self._last else seq


def _moments(
    connection: sqlite3.Connection, identity: Identity, session_id: str
) -> dict[Moment, list[int]]:
    """The entries that a session has."""
    owner = exactly(identity, "e")
    rows = connection.execute(
        f"SELECT e.time, e.kind, e.action, e.seq FROM entries e WHERE {owner.sql}"
        " AND e.session_id = ? ORDER BY e.seq",
        (*owner.values, session_id),
    )
    moments: dict[Moment, list[int]] = {}
    for time, kind, action, seq in rows:
        moments.setdefault((time, kind, action), []).append(seq)
    return moments


def _row(identity: Identity, record: EntryRecord) -> dict[str, object]:
    values = record.model_dump(exclude={"record", "id", "context_ids"})
    return {**values, **asdict(identity), "arguments": as_json(record.arguments)}
