"""Stores the changes that agents made to files, limited in size and age.

They are in a separate file next to the record: it may hold hundreds of megabytes that no backup
needs, and old entries are removed, while the record deletes nothing by itself. Removed data is
overwritten.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from storage.database import Database, insert_row
from storage.keeping.changes.models import (
    INSERT_CHANGE,
    Caller,
    Difference,
    FileState,
    Observed,
    OwnChanges,
    RootState,
    add_contents,
    caller_of,
    caller_values,
    change_values,
    content_bytes,
    file_of,
    remove_unused_contents,
)
from storage.models import Identity


@dataclass(frozen=True, slots=True)
class _Root:
    """The rows of one root, during a transaction."""

    connection: sqlite3.Connection
    name: bytes
    now: float

    def generation(self) -> int:
        """Returns a number that changes with the files; 0 if the root was never scanned."""
        found = "SELECT generation FROM roots WHERE root = ?"
        row = self.connection.execute(found, (self.name,)).fetchone()
        return 0 if row is None else int(row["generation"])

    def turn(self, *, makes: bool = False) -> int:
        """Starts the next generation; returns 0 if the root was never scanned."""
        last = self.generation()
        if not last and not makes:
            return 0
        # Derived from the time, so that a forgotten root never repeats an earlier generation.
        following = max(last + 1, int(self.now * 1000))
        row = {"root": self.name, "generation": following, "seen": self.now}
        insert_row(self.connection, "roots", row, replace=True)
        return following

    def set_files(self, files: Mapping[str, FileState]) -> None:
        """Stores the current state of some paths."""
        self.connection.executemany(
            "INSERT OR REPLACE INTO files (root, path, state, mode, why, signature)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            ((self.name, os.fsencode(path), *each) for path, each in files.items() if each.state),
        )
        self.remove_files(path for path, each in files.items() if not each.state)

    def remove_files(self, paths: Iterable[str]) -> None:
        """Removes the state of some paths."""
        self.connection.executemany(
            "DELETE FROM files WHERE root = ? AND path = ?",
            ((self.name, os.fsencode(path)) for path in paths),
        )

    def begin_and_end(self, begins: Caller | None, ends: Caller | None) -> None:
        """Records that a program started or ended."""
        if begins is not None:
            # Without those of dead servers, whose changes the current scan has seen.
            found = "SELECT call, pid FROM programs WHERE root = ?"
            rows = self.connection.execute(found, (self.name,)).fetchall()
            dead = [(row["call"],) for row in rows if not _is_alive(row["pid"])]
            self.connection.executemany("DELETE FROM programs WHERE call = ?", dead)
            self.connection.execute(
                "INSERT OR REPLACE INTO programs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*caller_values(begins, self.now), self.name, os.getpid()),
            )
        if ends is not None:
            self.connection.execute("DELETE FROM programs WHERE call = ?", (ends.call,))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


CHANGES = "changes.db"  # the file's name in a data directory

_DAY = 86_400


def open_changes(directory: Path, *, keep_bytes: int, keep_days: int) -> Changes:
    """Opens the changes of a data directory, which is created if missing."""
    schema = resources.files("storage") / "keeping" / "changes" / "migrations"
    database = Database(directory / CHANGES, schema)
    return Changes(database, keep_bytes=keep_bytes, keep_seconds=keep_days * _DAY)


class Changes:
    """The changes of all users, and the last known state of roots; its methods block."""

    def __init__(self, database: Database, *, keep_bytes: int, keep_seconds: float) -> None:
        self._database = database
        self._keep_seconds = keep_seconds
        self.keep_bytes = keep_bytes

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def own(self, identity: Identity) -> OwnChanges:
        """Returns the changes of one identity."""
        return OwnChanges(self._database, identity)

    def keep(
        self, root: str, by: Caller, difference: Difference, content: Mapping[str, bytes]
    ) -> int:
        """Stores a change that is about to be made, synced to disk, and returns its number."""
        name, now = os.fsencode(root), time.time()
        with self._database.write() as connection:
            add_contents(connection, content)
            made = connection.execute(INSERT_CHANGE, change_values(by, now, name, difference))
            number = int(made.lastrowid or 0)
            rows = _Root(connection, name, now)
            if rows.turn():  # so that it is not attributed to a running program
                rows.set_files({difference.path: difference.after})
            self._bound(connection, name, number)
        return number

    def withdraw(self, root: str, number: int, difference: Difference) -> None:
        """Removes a change that was not made after all."""
        name = os.fsencode(root)
        with self._database.write() as connection:
            connection.execute("DELETE FROM changes WHERE change_id = ?", (number,))
            rows = _Root(connection, name, time.time())
            if rows.turn():
                rows.set_files({difference.path: difference.before})
            remove_unused_contents(connection, [difference.before.state])

    def root_state(self, root: str, known: RootState | None) -> RootState:
        """Returns the last known state of a root; the given state if nothing is newer."""
        name = os.fsencode(root)
        with self._database.read() as connection:
            number = _Root(connection, name, time.time()).generation()
            if known is not None and known.generation == number:
                return known
            rows = connection.execute(
                "SELECT path, state, mode, why, signature FROM files WHERE root = ?", (name,)
            )
            return RootState(number, dict(map(file_of, rows)))

    def advance(  # noqa: PLR0913  # one transaction
        self,
        root: str,
        known: RootState,
        observed: Observed,
        *,
        differences: Sequence[Difference] = (),
        by: Caller | None = None,
        begins: Caller | None = None,
        ends: Caller | None = None,
    ) -> RootState | None:
        """Stores the scan of a root as its last known state.

        It survives the process at once, but a power failure only after the next synced write: a
        sync per program would cost more than the program. Returns the new state; None if another
        process was faster, so that nothing was stored.
        """
        name, now = os.fsencode(root), time.time()
        gone = [path for path in known.files if path not in observed.files]
        new = {
            path: state for path, state in observed.files.items() if known.files.get(path) != state
        }
        with self._database.write(synced=False) as connection:
            rows = _Root(connection, name, now)
            if rows.generation() != known.generation:
                return None
            number = known.generation
            if gone or new or not number:
                number = rows.turn(makes=True)
            add_contents(connection, observed.contents)
            rows.set_files(new)
            rows.remove_files(gone)
            first = 0
            if by is not None and differences:
                first = _next_number(connection)
                connection.executemany(
                    INSERT_CHANGE,
                    (change_values(by, now, name, difference) for difference in differences),
                )
            rows.begin_and_end(begins, ends)
            replaced = {known.files[path].state for path in (*gone, *new) if path in known.files}
            remove_unused_contents(connection, replaced)
            self._bound(connection, name, first)
        return RootState(number, observed.files)

    def running(self, root: str) -> Caller | None:
        """Returns the last started program that has not ended."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT * FROM programs WHERE root = ? ORDER BY time DESC LIMIT 1",
                (os.fsencode(root),),
            ).fetchone()
        return None if row is None else caller_of(row)

    def _bound(self, connection: sqlite3.Connection, root: bytes, first: int) -> None:
        """Removes what is too old or too large; the states of other roots go first."""
        limit = first or _next_number(connection)
        idle = "root != ? AND root NOT IN (SELECT root FROM programs)"
        oldest = time.time() - self._keep_seconds
        row = connection.execute("SELECT min(change_id), time FROM changes").fetchone()
        if row[0] is not None and row["time"] < oldest:
            connection.execute(
                "DELETE FROM changes WHERE time < ? AND change_id < ?", (oldest, limit)
            )
            _forget_roots(connection, f"{idle} AND seen < ?", (root, oldest))
        if content_bytes(connection) <= self.keep_bytes:
            return
        _forget_roots(connection, idle, (root,))
        while content_bytes(connection) > self.keep_bytes:
            removed = connection.execute(
                "DELETE FROM changes WHERE change_id < ? AND change_id <= (SELECT min(change_id)"
                " + (max(change_id) - min(change_id)) / 10 FROM changes)",
                (limit,),
            )
            if not removed.rowcount:
                return
            remove_unused_contents(connection)


def _next_number(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT max(change_id) FROM changes").fetchone()
    return int(row[0] or 0) + 1


def _forget_roots(
    connection: sqlite3.Connection, condition: str, values: tuple[object, ...]
) -> None:
    connection.execute(
        f"DELETE FROM files WHERE root IN (SELECT root FROM roots WHERE {condition})", values
    )
    connection.execute(f"DELETE FROM roots WHERE {condition}", values)
    remove_unused_contents(connection)
