"""Summaries of sessions: layer 3, one for each session that something can be told of."""

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
from storage.database import Database, Where, exactly
from storage.events.extractive import extract
from storage.events.hierarchy import Part
from storage.index.embedders.base import Embedder
from storage.memory.derived import TELLING, find_made, place
from storage.memory.entries import Entries
from storage.memory.models import IDLE_SECONDS, Entry, MemoryLayer
from storage.models import Context, ContextType, Identity, NewContext

SUMMED_UP = "session"
"""The raw_type of a summary; its raw_id is the session's."""

MOST_PARTS = 400
"""Of how many entries a summary tells at most; of more, the most important."""

_TOLD = Where(f"NOT e.is_recall AND {TELLING.sql}", ())


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session that is to be summed up.

    Attributes:
        identity: Whose; the summary is kept under it.
        session_id: Which.
        client: Name of its client.
        start_time: Unix seconds.
        last_time: Unix seconds when something last happened in it.
        entries: What the summary is to tell of, in order.
        fingerprint: Of all that can be told of it.
    """

    identity: Identity
    session_id: str
    client: str
    start_time: float
    last_time: float
    entries: tuple[Entry, ...]
    fingerprint: str

    @property
    def title(self) -> str:
        """When it was, and with which client."""
        start, end = (
            datetime.fromtimestamp(each, UTC) for each in (self.start_time, self.last_time)
        )
        until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
        client = f" with {self.client}" if self.client else ""
        return f"Session{client}, {start:%Y-%m-%d %H:%M} to {until} UTC"

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the summary is to tell of, each with its time."""
        return tuple(
            Part(f"{datetime.fromtimestamp(entry.time, UTC):%H:%M}", _told(entry))
            for entry in self.entries
        )


class SessionSummaries:
    """The summaries of sessions, kept up to what can be told of each.

    Args:
        database: The record.
        entries: Layer 1.
        embedder: Makes the vectors of sentences.
    """

    def __init__(self, database: Database, entries: Entries, embedder: Embedder) -> None:
        self._database = database
        self._entries = entries
        self._embedder = embedder

    def due(
        self, owner: Where, limit: int, *, named: Sequence[str] = (), but: str = ""
    ) -> tuple[list[DueSession], int]:
        """The sessions that are to be summed up now, and how many more are.

        Those that ended and have no summary, or went on since they had one; a session of which
        nothing can be told has none.

        Args:
            owner: A condition on `sessions AS s`.
            limit: How many to have ready at most.
            named: Only these, ended or not.
            but: A session that goes on.
        """
        with self._database.read() as connection:
            due = list(unsettled(connection, owner, named=named, but=but))
        return [self._loaded(row, seqs) for row, seqs in due[:limit]], len(due[limit:])

    def first_due(self, owner: Where) -> DueSession | None:
        """The session that ended first of those that are to be summed up; None if there is none.

        Args:
            owner: A condition on `sessions AS s`.
        """
        with self._database.read() as connection:
            found = next(unsettled(connection, owner), None)
        return None if found is None else self._loaded(*found)

    def settle(self, owner: Where) -> None:
        """Notes of ended sessions that nothing is to be told of that they were looked at.

        Args:
            owner: A condition on `sessions AS s`.
        """
        with self._database.read() as connection:
            looked_at = _looked_at(connection, owner)
            due = [row for row, _ in unsettled(connection, owner)]
        settled = [row for row in looked_at if row not in due]
        if settled:
            with self._database.write() as connection:
                for row in settled:
                    _mark(connection, _identity(row), row["id"], row["last_time"])

    def extract(self, due: DueSession, max_characters: int) -> str:
        """The most central sentences of what a summary is to tell of."""
        told = extract([part.text for part in due.parts], self._embedder, max_characters)
        return "\n".join(filter(None, told))

    def keep(self, due: DueSession, text: str, summarizer: str) -> Context | None:
        """Writes a summary in place of its earlier version, in one transaction.

        Args:
            due: Of what.
            text: What it says.
            summarizer: Who wrote it, for its metadata.

        Returns:
            The summary; None if what can be told of the session has changed meanwhile, so that it
            is due again.
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
            },
            raw_type=SUMMED_UP,
            raw_id=due.session_id,
            sha256=due.fingerprint,
            memory_layer=MemoryLayer.SUMMARY,
            session_id=due.session_id,
        )
        chunks = prepare(new)
        with self._database.write() as connection:
            if _fingerprint(_telling(connection, due.identity, due.session_id)) != due.fingerprint:
                return None
            seq = place(connection, due.identity, new, chunks)
            connection.execute("DELETE FROM memory_parts WHERE memory_seq = ?", (seq,))
            connection.executemany(
                "INSERT INTO memory_parts (memory_seq, entry_seq, is_copy) VALUES (?, ?, 0)",
                ((seq, entry.seq) for entry in due.entries),
            )
            _mark(connection, due.identity, due.session_id, due.last_time)
            return read_context(connection, seq)

    def _loaded(self, row: sqlite3.Row, seqs: Sequence[int]) -> DueSession:
        identity = _identity(row)
        entries = self._entries.get(identity, seqs)
        chosen = sorted(entries, key=lambda entry: (-entry.importance, -entry.seq))[:MOST_PARTS]
        return DueSession(
            identity,
            row["id"],
            row["client"],
            row["start_time"],
            row["last_time"],
            tuple(sorted(chosen, key=lambda entry: entry.seq)),
            _fingerprint(seqs),
        )


def unsettled(
    connection: sqlite3.Connection, owner: Where, *, named: Sequence[str] = (), but: str = ""
) -> Iterator[tuple[sqlite3.Row, list[int]]]:
    """The sessions that something can be told of and no summary tells; arguments as of `due`.

    Yields:
        The row of each, and the seqs of the entries that tell something.
    """
    for row in _looked_at(connection, owner, named, but):
        seqs, made = _told_of(connection, row)
        if seqs and made != _fingerprint(seqs):
            yield row, seqs


def _looked_at(
    connection: sqlite3.Connection, owner: Where, named: Sequence[str] = (), but: str = ""
) -> list[sqlite3.Row]:
    """The named sessions, or those that ended since they were looked at or lost their summary."""
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


def _told_of(connection: sqlite3.Connection, row: sqlite3.Row) -> tuple[list[int], str | None]:
    """What can be told of a session, and the fingerprint of what is."""
    identity = _identity(row)
    made = find_made(connection, identity, SUMMED_UP, row["id"])
    return _telling(connection, identity, row["id"]), None if made is None else made["sha256"]


def _telling(connection: sqlite3.Connection, identity: Identity, session_id: str) -> list[int]:
    owner = exactly(identity, "e")
    rows = connection.execute(
        f"SELECT e.seq FROM entries e WHERE {owner.sql} AND e.session_id = ? AND {_TOLD.sql}"
        " ORDER BY e.seq",
        (*owner.values, session_id),
    )
    return [int(row[0]) for row in rows]


def _mark(
    connection: sqlite3.Connection, identity: Identity, session_id: str, last_time: float
) -> None:
    owner = exactly(identity, "sessions")
    connection.execute(
        f"UPDATE sessions SET told_until = ? WHERE {owner.sql} AND id = ?",
        (last_time, *owner.values, session_id),
    )


def _identity(row: sqlite3.Row) -> Identity:
    return Identity(row["user_id"], row["device_id"], row["agent_id"])


def _fingerprint(seqs: Sequence[int]) -> str:
    return sha256(json.dumps(list(seqs)).encode()).hexdigest()


def _told(entry: Entry) -> str:
    """What an entry says, its target once."""
    given = [f"{key}={value}" for key, value in entry.arguments.items() if value != entry.target]
    lines = (f"{entry.action} {entry.target}".strip(), " ".join(given), entry.said)
    return "\n".join(filter(None, lines))
