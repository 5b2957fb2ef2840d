"""Checks of the data directory: free space, the record, and both indexes against it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from server.cli.checks.findings import Finding, run_check
from server.cli.invocation import invocation
from server.hooks.payloads import CLIENTS
from storage.database import RECORD, Database
from storage.index.indexer import read_backlog
from storage.keeping.examination import damage, unindexed
from storage.keeping.lost import check_record
from storage.memory.captured import last_fired

LEAST_FREE_BYTES = 20_000_000

RECORD_CHECK = "SQLite"
WORDS_CHECK = "Words"
VECTORS_CHECK = "Vectors"
HOOKS_CHECK = "Hooks"


def check_data(data_dir: Path | None, chroma_url: str) -> Iterator[Finding]:
    """Checks the record and, if it is sound, the indexes."""
    record = None if data_dir is None else record_of(data_dir)
    finding = run_check(RECORD_CHECK, lambda: sqlite(record, data_dir))
    yield finding
    if record is not None and finding.ok:
        yield run_check(WORDS_CHECK, lambda: words(record))
        yield run_check(VECTORS_CHECK, lambda: vectors(record, chroma_url))
        yield run_check(HOOKS_CHECK, lambda: hooks(record))


def data_directory(path: Path) -> str:
    """Checks that a data directory is writable and has free space."""
    there = next(parent for parent in (path, *path.parents) if parent.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{there} is not writable: choose another directory with --data-dir.")
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE_BYTES:
        raise OSError(f"{there} has {free / 1e6:.1f} MB free: make room, or choose another one.")
    state = f"{free / 1e9:.1f} GB free"
    return f"{path}, {state}" if there == path else f"{path}, created on first use, {state}"


def sqlite(record: Path | None, data_dir: Path | None) -> str:
    """Checks SQLite and the integrity of the record."""
    if data_dir is not None:
        check_record(data_dir / RECORD)
    if record is None:
        return f"{sqlite3.sqlite_version}, nothing stored yet"
    with closing(Database(record)) as database, database.read() as connection:
        damaged = damage(connection)
        (count,) = connection.execute("SELECT count(*) FROM chunks").fetchone()
        waiting = connection.execute(
            "SELECT m.state, m.scheme, count(q.chunk_seq) FROM models m"
            " LEFT JOIN embed_queue q ON q.model_seq = m.seq WHERE m.state <> 'old'"
            " GROUP BY m.seq ORDER BY m.state"
        ).fetchall()
    if damaged:
        raise RuntimeError(f"{record} is damaged ({damaged}): restore a backup.")
    said = [f"{sqlite3.sqlite_version}, {record} with {count} chunks"]
    for state, scheme, missing in waiting:
        if state == "current":
            said.append(f"{missing} of them not embedded yet")
        else:
            said.append(f"{count - missing} of them embedded again by {scheme}, which takes over")
    return ", ".join(said)


def hooks(record: Path) -> Finding:
    """Returns when the hooks of each client last fired."""
    with closing(Database(record)) as database:
        fired = last_fired(database)
    said = [
        f"{CLIENTS[client].title if client in CLIENTS else client}: {event},"
        f" {datetime.fromtimestamp(moment, UTC).astimezone():%Y-%m-%d %H:%M}"
        for client, (event, moment) in sorted(fired.items())
    ]
    return Finding(HOOKS_CHECK, ok=None, detail="; ".join(said) or "none has fired yet")


def words(record: Path) -> str:
    """Compares the lexical index with the record."""
    with closing(Database(record)) as database, database.read() as connection:
        wrong, waiting = unindexed(connection), read_backlog(connection).words
    if wrong:
        raise RuntimeError(
            f"The index of words is wrong for {wrong} chunks: run `{invocation()} doctor --repair`."
        )
    said = f"{waiting} chunks wait to be indexed" if waiting else "every chunk is indexed"
    return f"{said} in {record}"


def vectors(record: Path, url: str) -> str:
    """Compares the vector index of a data directory with its record."""
    from storage.index.vector_sync import EXACT_LIMIT
    from storage.index.vectors import VectorIndex, chroma_home

    with closing(Database(record)) as database:
        name = database.get_meta("library")
        with database.read() as connection:
            counts = connection.execute(
                "SELECT v.model_seq, v.user_id, count(*) FROM vector_collections v"
                " JOIN models m ON m.seq = v.model_seq JOIN chunks c ON c.user_id = v.user_id"
                " JOIN embeddings e ON e.chunk_seq = c.seq AND e.model_seq = v.model_seq"
                " WHERE m.state = 'current' GROUP BY v.model_seq, v.user_id"
            ).fetchall()
            waiting = connection.execute("SELECT count(*) FROM vector_outbox").fetchone()[0]
    home = chroma_home(record.parent, url)
    home.check()
    if waiting or name is None:
        return f"{waiting} changes wait for the server to deliver them"
    if not counts:
        return f"none needed: no user has more than {EXACT_LIMIT:,}, so searches compare them all"
    with closing(VectorIndex(home, library=name)) as index:
        held = sum(index.count(model, user) for model, user, _ in counts)
    stored = sum(count for *_, count in counts)
    if held != stored:
        raise RuntimeError(
            f"{home.name} holds {held} of {stored} vectors: a running server"
            f" rebuilds it, and so does `{invocation()} doctor --repair`."
        )
    return f"{held} vectors in {home.name}, as many as the record has"


def record_of(data_dir: Path) -> Path | None:
    """Returns the record in a data directory, if there is one."""
    record = data_dir / RECORD
    return record if record.exists() else None
