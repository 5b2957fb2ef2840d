"""Layer 1 of memory: calls and messages in chronological order, recorded in the background."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from storage.database import Database, View, Where, identity_clause, insert_row
from storage.errors import StorageError
from storage.models import Entry, Identity, NewEntry, Session

LINKS = 100  # maximum contexts that one entry is linked to

MOST_REPEATS = 3
"""Maximum earlier successes with the same target that raise an entry's importance by 1 each."""

LED_TO_SECONDS = 600
"""Seconds after a message in which contexts stored in its session are attributed to it.

The first stored context always is.
"""

MOST_WAITING = 1_000  # maximum entries that wait while the record is locked; further ones are lost
COMPLAINT_SECONDS = 60.0  # minimum seconds between two warnings in the log

_logger = logging.getLogger("toolcrib")
_WITH_CLIENT = (
    "e.*, (SELECT s.client FROM sessions s WHERE s.user_id = e.user_id"
    " AND s.device_id = e.device_id AND s.agent_id = e.agent_id AND s.id = e.session_id) AS client"
)


class Entries:
    """The entries of all identities; each call is bound to one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, identity: Identity, new: NewEntry) -> int:
        """Adds an entry to its session and returns its seq."""
        return self.record_all([(identity, new)])[0]

    def record_all(self, entries: Sequence[tuple[Identity, NewEntry]]) -> list[int]:
        """Adds entries in one transaction, and counts the use of memories they returned."""
        with self._database.write(synced=False) as connection:  # every tool call waits for this
            return [insert_entry(View(connection, identity), new) for identity, new in entries]

    def recent(  # noqa: PLR0913  # each is a filter
        self,
        identity: Identity,
        session_id: str | None,
        limit: int,
        *,
        before: int | None = None,
        after: int | None = None,
        recalls: bool = True,
    ) -> list[Entry]:
        """Returns the last entries, newest first; `recalls` only searched the stored data."""
        parts = [identity_clause(identity, "e")]
        if session_id is not None:
            parts.append(Where("e.session_id = ?", (session_id,)))
        if before is not None:
            parts.append(Where("e.seq < ?", (before,)))
        if after is not None:
            parts.append(Where("e.seq > ?", (after,)))
        if not recalls:
            parts.append(Where("e.is_recall = 0", ()))
        return self._select(parts, limit)

    def find(  # noqa: PLR0913  # each is a filter
        self,
        identity: Identity,
        *,
        actions: Sequence[str] | None = None,
        node: str | None = None,
        target: str | None = None,
        target_part: str | None = None,
        text: str | None = None,
        since: float | None = None,
        until: float | None = None,
        outcome: str | None = None,
        session_id: str | None = None,
        limit: int,
        offset: int = 0,
    ) -> list[Entry]:
        """Returns entries that match all given filters, newest first.

        A node is a session, agent, device or client. `target_part` and `text` are found in any
        case; `text` in the target, the arguments or the answer. An outcome is "ok", an error_type,
        or "failed" for any error.
        """
        columns = {"target": target, "session_id": session_id}
        parts = [identity_clause(identity, "e")]
        parts += [
            Where(f"e.{name} = ?", (_replace_surrogates(value),))
            for name, value in columns.items()
            if value is not None
        ]
        if actions is not None:
            parts.append(_among("e.action", actions))
        if node is not None:
            parts.append(_by(node))
        if target_part is not None:
            parts.append(_within("e.target", target_part))
        if text is not None:
            parts.append(_within("e.target || char(10) || e.arguments || char(10) || e.said", text))
        if since is not None:
            parts.append(Where("e.time >= ?", (since,)))
        if until is not None:
            parts.append(Where("e.time <= ?", (until,)))
        if outcome is not None:
            this = _among("e.outcome", [outcome])
            parts.append(Where("e.outcome <> 'ok'", ()) if outcome == "failed" else this)
        return self._select(parts, limit, offset)

    def get(self, identity: Identity, seqs: Sequence[int]) -> list[Entry]:
        """Returns the entries with these seqs, oldest first; missing ones are left out."""
        wanted = Where("e.seq IN (SELECT value FROM json_each(?))", (json.dumps(list(seqs)),))
        return self._select([identity_clause(identity, "e"), wanted], len(seqs))[::-1]

    def sessions(self, identity: Identity, limit: int) -> list[Session]:
        """Returns the sessions, the one with the latest entry first."""
        owner = identity_clause(identity, "s")
        rows = self._database.rows(
            "SELECT s.*, (SELECT count(*) FROM entries e WHERE e.user_id = s.user_id"
            " AND e.device_id = s.device_id AND e.agent_id = s.agent_id"
            f" AND e.session_id = s.id) AS entries FROM sessions s WHERE {owner.sql}"
            " ORDER BY s.last_time DESC, s.id LIMIT ?",
            (*owner.values, limit),
        )
        return [Session(**{key: row[key] for key in Session.__slots__}) for row in rows]

    def forget(self, identity: Identity, seqs: Sequence[int]) -> int:
        """Deletes entries permanently, and sessions left empty; returns the number of entries."""
        owner = identity_clause(identity, "entries")
        of_session = identity_clause(identity, "sessions")
        with self._database.write() as connection:
            gone = connection.execute(
                f"DELETE FROM entries WHERE {owner.sql}"
                " AND seq IN (SELECT value FROM json_each(?))",
                (*owner.values, json.dumps(list(seqs))),
            ).rowcount
            connection.execute(
                f"DELETE FROM sessions WHERE {of_session.sql} AND NOT EXISTS"
                " (SELECT 1 FROM entries e WHERE e.user_id = sessions.user_id"
                " AND e.device_id = sessions.device_id AND e.agent_id = sessions.agent_id"
                " AND e.session_id = sessions.id)",
                of_session.values,
            )
        return gone

    def count(self, identity: Identity, session_id: str | None = None) -> int:
        """Returns the number of entries of one session or of all."""
        parts = [identity_clause(identity, "e")]
        if session_id is not None:
            parts.append(Where("e.session_id = ?", (session_id,)))
        where = Where.every(parts)
        found = f"SELECT count(*) FROM entries e WHERE {where.sql}"
        return int(self._database.rows(found, where.values)[0][0])

    def tally(self, identity: Identity) -> dict[str, int]:
        """Returns the number of entries per tool or prompt, highest first."""
        owner = identity_clause(identity, "e")
        rows = self._database.rows(
            f"SELECT e.action, count(*) FROM entries e WHERE {owner.sql}"
            " GROUP BY e.action ORDER BY count(*) DESC, e.action",
            owner.values,
        )
        return {row[0]: int(row[1]) for row in rows}

    def _select(self, parts: Sequence[Where], limit: int, offset: int = 0) -> list[Entry]:
        where = Where.every(parts)
        rows = self._database.rows(
            f"SELECT {_WITH_CLIENT} FROM entries e WHERE {where.sql}"
            " ORDER BY e.seq DESC LIMIT ? OFFSET ?",
            (*where.values, limit, offset),
        )
        return [_entry(row) for row in rows]


class Recorder:
    """Writes entries in order on a thread of its own, and never raises."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._waiting: deque[tuple[Identity, NewEntry]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recorder")
        self._closing = threading.Lock()
        self._closed = False
        self._complained = -COMPLAINT_SECONDS

    def submit(self, identity: Identity, new: NewEntry) -> Future[None]:
        """Queues an entry; the future is done once it is written, or is known to be lost."""
        with self._closing:
            if not self._closed and len(self._waiting) < MOST_WAITING:
                self._waiting.append((identity, new))
                return self._thread.submit(self._write)
        self._complain("the record is locked, and too many calls wait")
        lost: Future[None] = Future()
        lost.set_result(None)
        return lost

    def close(self) -> None:
        """Writes the queued entries and stops the thread."""
        with self._closing:
            self._closed = True
        self._thread.shutdown()

    def _write(self) -> None:
        """Writes all queued entries; later calls for the same batch then find nothing to do."""
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not batch:
            return
        try:
            self._entries.record_all(batch)
        except StorageError as error:
            self._complain(error.message)
        except Exception as error:
            if time.monotonic() - self._complained >= COMPLAINT_SECONDS:
                _logger.exception("A call could not be recorded")
            self._complain(str(error))

    def _complain(self, problem: str) -> None:
        now = time.monotonic()
        if now - self._complained >= COMPLAINT_SECONDS:
            self._complained = now
            _logger.warning("Calls are not recorded: %s", problem)


class OwnEntries:
    """The methods of `Entries` that one identity may call, bound to that identity."""

    def __init__(self, entries: Entries, identity: Identity) -> None:
        self.find = partial(entries.find, identity)
        self.sessions = partial(entries.sessions, identity)
        self.count = partial(entries.count, identity)
        self.tally = partial(entries.tally, identity)


def linked_entries(connection: sqlite3.Connection, context_seq: int) -> list[tuple[int, str]]:
    """Returns the entries linked to a context with their targets, for a later `restore_links`."""
    rows = connection.execute(
        "SELECT e.seq, e.target FROM entries e JOIN entry_contexts l ON l.entry_seq = e.seq"
        " WHERE l.context_seq = ?",
        (context_seq,),
    )
    return [(int(row[0]), str(row[1])) for row in rows]


def restore_links(
    connection: sqlite3.Connection, linked: Sequence[tuple[int, str]], context_seq: int
) -> None:
    """Links entries to a document's new version, and restores their targets."""
    connection.executemany(
        "UPDATE entries SET target = ? WHERE seq = ?", ((target, seq) for seq, target in linked)
    )
    connection.executemany(
        "INSERT OR IGNORE INTO entry_contexts (entry_seq, context_seq) VALUES (?, ?)",
        ((seq, context_seq) for seq, _ in linked),
    )


def insert_entry(view: View, new: NewEntry) -> int:
    """Adds an entry to its session, links it to its contexts, and returns its seq.

    Each step of a statement waits for the interpreter lock once more, so there are few.
    """
    connection = view.connection
    _keep_session(view, new)
    named = _named_contexts(view, new.context_ids)
    is_stored = bool(new.context_ids) and not new.is_recall
    if is_stored and view.row(named.sql, named.values) is None:  # its contexts are deleted
        new = replace(new, target="", arguments={}, said="")
    texts = {
        "session_id": new.session_id,
        "action": new.action,
        "target": new.target,
        "arguments": json.dumps(dict(new.arguments), ensure_ascii=False),
        "outcome": new.outcome,
        "said": new.said,
    }
    row = view.owner | {name: _replace_surrogates(text) for name, text in texts.items()}
    row |= {
        "kind": new.kind,
        "time": new.time,
        "milliseconds": new.milliseconds,
        "importance": min(10.0, new.importance + _repeats(view, new)),
        "is_recall": new.is_recall,
    }
    seq = insert_row(connection, "entries", row)
    if new.context_ids:  # messages that led to storing the contexts are linked too
        tellers = [seq, *_messages(view, new)] if is_stored else [seq]
        connection.execute(
            "INSERT OR IGNORE INTO entry_contexts (entry_seq, context_seq)"
            f" SELECT t.value, x.seq FROM ({named.sql}) x CROSS JOIN json_each(?) t",
            (*named.values, json.dumps(tellers)),
        )
    if new.read_ids:
        read = _named_contexts(view, new.read_ids)
        connection.execute(
            "UPDATE memories SET uses = uses + 1, last_used = max(coalesce(last_used, 0), ?)"
            f" WHERE context_seq IN ({read.sql})",
            (new.time, *read.values),
        )
    return seq


def _keep_session(view: View, new: NewEntry) -> None:
    view.connection.execute(
        "INSERT INTO sessions (user_id, device_id, agent_id, id, client, project, start_time,"
        " last_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " client = CASE WHEN excluded.client = '' THEN client ELSE excluded.client END,"
        " project = CASE WHEN excluded.project = '' THEN project ELSE excluded.project END,"
        " start_time = min(start_time, excluded.start_time),"
        " last_time = max(last_time, excluded.last_time)",
        (
            *(*view.owner.values(), _replace_surrogates(new.session_id)),
            *(_replace_surrogates(new.client), _replace_surrogates(new.project)),
            *(new.time, new.time),
        ),
    )


def _repeats(view: View, new: NewEntry) -> int:
    """Counts earlier successes with the same target in the session, up to the limit."""
    if not new.target or new.outcome != "ok":
        return 0
    own = view.own("e")
    row = view.row(
        f"SELECT count(*) FROM (SELECT 1 FROM entries e WHERE {own.sql} AND e.target = ?"
        " AND e.session_id = ? AND e.outcome = 'ok' LIMIT ?)",
        (
            *(*own.values, _replace_surrogates(new.target)),
            *(_replace_surrogates(new.session_id), MOST_REPEATS),
        ),
    )
    return 0 if row is None else int(row[0])


def _messages(view: View, new: NewEntry) -> list[int]:
    own = view.own("e")
    rows = view.rows(
        f"SELECT e.seq FROM entries e WHERE {own.sql} AND e.session_id = ?"
        " AND e.kind = 'message' AND e.is_recall = 0"
        " AND (e.time >= ? OR NOT EXISTS"
        " (SELECT 1 FROM entry_contexts l WHERE l.entry_seq = e.seq)) ORDER BY e.seq DESC LIMIT ?",
        (*own.values, _replace_surrogates(new.session_id), new.time - LED_TO_SECONDS, LINKS),
    )
    return [int(row[0]) for row in rows]


def _named_contexts(view: View, context_ids: Sequence[str]) -> Where:
    """Returns the query for the contexts with these ids that exist."""
    owner = view.seen("c")
    return Where(
        f"SELECT c.seq FROM contexts c WHERE {owner.sql}"
        " AND c.id IN (SELECT value FROM json_each(?))",
        (*owner.values, json.dumps(context_ids[:LINKS])),
    )


def _replace_surrogates(text: str) -> str:
    """Replaces unpaired surrogates, because SQLite stores UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _among(column: str, values: Sequence[str]) -> Where:
    return Where(
        f"{column} IN ({', '.join('?' * len(values))})", tuple(map(_replace_surrogates, values))
    )


def _within(column: str, part: str) -> Where:
    bare = _replace_surrogates(part)
    escaped = bare.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return Where(f"{column} LIKE ? ESCAPE '\\'", (f"%{escaped}%",))


def _by(node: str) -> Where:
    return Where(
        "(e.session_id = ? OR e.agent_id = ? OR e.device_id = ? OR client = ? COLLATE NOCASE)",
        (_replace_surrogates(node),) * 4,
    )


def _entry(row: sqlite3.Row) -> Entry:
    fields = {key: row[key] for key in Entry.__slots__}
    fields["arguments"] = json.loads(row["arguments"])
    fields["client"] = row["client"] or ""
    return Entry(**fields | {"is_recall": bool(row["is_recall"])})
