"""How roots were last seen, and which programs run in them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping

from storage.keeping.changes.models import Caller, FileState
from storage.keeping.changes.rows import caller_values


def generation(connection: sqlite3.Connection, root: bytes) -> int:
    """Differs whenever the files do; 0 where the root was never looked at."""
    row = connection.execute("SELECT generation FROM roots WHERE root = ?", (root,)).fetchone()
    return 0 if row is None else int(row["generation"])


def turn(connection: sqlite3.Connection, root: bytes, now: float, *, makes: bool = False) -> int:
    """Begins the next generation of a root, which is 0 where it was never looked at."""
    last = generation(connection, root)
    if not last and not makes:
        return 0
    # As many as there ever were: a root that is forgotten begins with none that was known before.
    following = max(last + 1, int(now * 1000))
    connection.execute(
        "INSERT OR REPLACE INTO roots (root, generation, seen) VALUES (?, ?, ?)",
        (root, following, now),
    )
    return following


def set_files(connection: sqlite3.Connection, root: bytes, files: Mapping[str, FileState]) -> None:
    """Says what is where now, of some paths."""
    connection.executemany(
        "INSERT OR REPLACE INTO files (root, path, state, mode, why, signature)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        ((root, os.fsencode(path), *state) for path, state in files.items() if state.state),
    )
    connection.executemany(
        "DELETE FROM files WHERE root = ? AND path = ?",
        ((root, os.fsencode(path)) for path, state in files.items() if not state.state),
    )


def begin_and_end(
    connection: sqlite3.Connection,
    root: bytes,
    now: float,
    begins: Caller | None,
    ends: Caller | None,
) -> None:
    """Says that a program runs, or runs no longer."""
    if begins is not None:
        _remove_dead(connection, root)
        connection.execute(
            "INSERT OR REPLACE INTO programs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*caller_values(begins, now), root, os.getpid()),
        )
    if ends is not None:
        connection.execute("DELETE FROM programs WHERE call = ?", (ends.call,))


def _remove_dead(connection: sqlite3.Connection, root: bytes) -> None:
    """Removes programs of servers that are no more: what they did was seen just now."""
    rows = connection.execute("SELECT call, pid FROM programs WHERE root = ?", (root,)).fetchall()
    dead = [(row["call"],) for row in rows if not _is_alive(row["pid"])]
    connection.executemany("DELETE FROM programs WHERE call = ?", dead)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
