"""Summaries of sessions: layer 3, one for each session with content."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from storage.contexts.contexts import read_context
from storage.contexts.ingestion import prepare
from storage.database import Database, View, Where, identity_of, update_row
from storage.events.extractive import extract
from storage.events.hierarchy import Part
from storage.index.embedders.base import Embedder
from storage.memory.entries import Entries
from storage.memory.promotion import TELLING, find_made, place
from storage.models import (
    IDLE_SECONDS,
    Context,
    ContextType,
    Entry,
    Identity,
    MemoryLayer,
    NewContext,
)

SUMMED_UP = "session"  # the raw_type of a summary; its raw_id is the session's id
MOST_PARTS = 400  # maximum entries in a summary; of more, the most important are chosen


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session to be summarized."""

    identity: Identity
    session_id: str
    client: str
    project: str  # its directory; empty if unknown
    start_time: float  # Unix seconds
    last_time: float  # Unix seconds of its last activity
    entries: tuple[Entry, ...]  # the entries to summarize, in order
    fingerprint: str

    @property
    def title(self) -> str:
        """Its times and its client."""
        start, end = (
            datetime.fromtimestamp(each, UTC) for each in (self.start_time, self.last_time)
        )
        until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
        client = f" with {self.client}" if self.client else ""
        return f"Session{client}, {start:%Y-%m-%d %H:%M} to {until} UTC"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The texts to summarize, each with its time."""
        return tuple(
            Part(f"{datetime.fromtimestamp(entry.time, UTC):%H:%M}", _entry_text(entry))
            for entry in self.entries
        )


class SessionSummaries:
    """Keeps the summaries of sessions up to date."""

    def __init__(self, database: Database, entries: Entries, embedder: Embedder | None) -> None:
        self._database = database
        self._entries = entries
        self._embedder = embedder

    def due(
        self, owner: Where, limit: int, *, named: Sequence[str] = (), but: str = ""
    ) -> tuple[list[DueSession], int]:
        """Returns the sessions to summarize now, and the number of further ones.

        Those are sessions that ended without a summary, or continued after it. Sessions without
        content are excluded. `owner` is a condition on `sessions AS s`. With `named`, only those
        are returned, ended or not. `but` is excluded, because it is still active.
        """
        with self._database.read() as connection:
            due = list(unsettled(connection, owner, named=named, but=but))
        return [self._load(row, seqs) for row, seqs in due[:limit]], len(due[limit:])

    def first_due(self, owner: Where) -> DueSession | None:
        """Returns the session to summarize that ended first; None if there is none."""
        with self._database.read() as connection:
            found = next(unsettled(connection, owner), None)
        return None if found is None else self._load(*found)

    def settle(self, owner: Where) -> None:
        """Marks ended sessions without anything new to summarize as done."""
        with self._database.read() as connection:
            looked_at = _unchecked_sessions(connection, owner)
            due = [row for row, _ in unsettled(connection, owner)]
        settled = [row for row in looked_at if row not in due]
        if settled:
            with self._database.write() as connection:
                for row in settled:
                    _mark(View(connection, identity_of(row)), row["id"], row["last_time"])

    def extract(self, due: DueSession, max_characters: int) -> str:
        """Extracts the most central sentences for a summary."""
        extracts = extract([part.text for part in due.parts], self._embedder, max_characters)
        return "\n".join(filter(None, extracts))

    def keep(self, due: DueSession, text: str, summarizer: str) -> Context | None:
        """Writes a summary in place of its earlier version, in one transaction.

        Returns the summary; None if the session's content has changed meanwhile, so that it is due
        again.
        """
        new = NewContext(
            context_type=ContextType.KNOWLEDGE,
            title=due.title,
            text=text,
            importance=max(entry.importance for entry in due.entries),
            event_time=due.start_time,
            metadata={
                "summarizer": summarizer,
                "session": due.session_id,
                "entries": len(due.entries),
            }
            | ({"project": due.project} if due.project else {}),
            raw_type=SUMMED_UP,
            raw_id=due.session_id,
            sha256=due.fingerprint,
            memory_layer=MemoryLayer.SUMMARY,
            session_id=due.session_id,
        )
        chunks = prepare(new)
        with self._database.write() as connection:
            view = View(connection, due.identity)
            if _fingerprint(_telling(view, due.session_id)) != due.fingerprint:
                return None
            seq = place(view, new, chunks)
            connection.execute("DELETE FROM memory_parts WHERE memory_seq = ?", (seq,))
            connection.executemany(
                "INSERT INTO memory_parts (memory_seq, entry_seq, is_copy) VALUES (?, ?, 0)",
                ((seq, entry.seq) for entry in due.entries),
            )
            _mark(view, due.session_id, due.last_time)
            return read_context(connection, seq)

    def _load(self, row: sqlite3.Row, seqs: Sequence[int]) -> DueSession:
        identity = identity_of(row)
        entries = self._entries.get(identity, seqs)
        chosen = sorted(entries, key=lambda entry: (-entry.importance, -entry.seq))[:MOST_PARTS]
        return DueSession(
            identity,
            row["id"],
            row["client"],
            row["project"],
            row["start_time"],
            row["last_time"],
            tuple(sorted(chosen, key=lambda entry: entry.seq)),
            _fingerprint(seqs),
        )


def unsettled(
    connection: sqlite3.Connection, owner: Where, *, named: Sequence[str] = (), but: str = ""
) -> Iterator[tuple[sqlite3.Row, list[int]]]:
    """Yields sessions without a current summary, each with its entries that have content."""
    for row in _unchecked_sessions(connection, owner, named, but):
        view = View(connection, identity_of(row))
        seqs, made = _telling(view, row["id"]), find_made(view, SUMMED_UP, row["id"])
        if seqs and (made is None or made["sha256"] != _fingerprint(seqs)):
            yield row, seqs


def _unchecked_sessions(
    connection: sqlite3.Connection, owner: Where, named: Sequence[str] = (), but: str = ""
) -> list[sqlite3.Row]:
    """Returns the named sessions, or those ended since the last check or without a summary."""
    which = Where(
        "s.last_time <= ? AND s.id <> ? AND (s.told_until IS NULL OR s.told_until < s.last_time)",
        (time.time() - IDLE_SECONDS, but),
    )
    if named:
        which = Where("s.id IN (SELECT value FROM json_each(?))", (json.dumps(list(named)),))
    return connection.execute(
        f"SELECT s.* FROM sessions s WHERE {owner.sql} AND {which.sql} ORDER BY s.last_time",
        (*owner.values, *which.values),
    ).fetchall()


def _telling(view: View, session_id: str) -> list[int]:
    """Returns the entries of a session that have content, in order."""
    own = view.own("e")
    rows = view.rows(
        f"SELECT e.seq FROM entries e WHERE {own.sql} AND e.session_id = ? AND NOT e.is_recall"
        f" AND {TELLING.sql} ORDER BY e.seq",
        (*own.values, session_id),
    )
    return [int(row[0]) for row in rows]


def _mark(view: View, session_id: str, last_time: float) -> None:
    key = view.owner | {"id": session_id}
    update_row(view.connection, "sessions", {"told_until": last_time}, key)


def _fingerprint(seqs: Sequence[int]) -> str:
    return sha256(json.dumps(list(seqs)).encode()).hexdigest()


def _entry_text(entry: Entry) -> str:
    """Returns an entry's text, with its target only once; of a message only what it says."""
    if entry.kind == "message" and entry.said:
        return entry.said
    given = [f"{key}={value}" for key, value in entry.arguments.items() if value != entry.target]
    lines = (f"{entry.action} {entry.target}".strip(), " ".join(given), entry.said)
    return "\n".join(filter(None, lines))
