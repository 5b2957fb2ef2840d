"""The changes that agents made to files, and what they replaced, within a bound of size and age.

They are in a file of their own beside the record, with hundreds of megabytes that no backup needs.
It is bounded, while the record forgets nothing by itself. What is removed is overwritten.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from storage.database import Database
from storage.keeping.changes import contents
from storage.keeping.changes.models import (
    Caller,
    Difference,
    FileState,
    Observed,
    RootState,
)
from storage.keeping.changes.own import OwnChanges
from storage.keeping.changes.rows import (
    INSERT_CHANGE,
    caller_of,
    caller_values,
    change_values,
    file_of,
)
from storage.models import Identity


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


CHANGES = "changes.db"
"""The name of the file in a data directory."""

_DAY = 86_400


def open_changes(directory: Path, *, keep_bytes: int, keep_days: int) -> Changes:
    """Opens what is kept in a data directory, which is made where it is missing."""
    schema = resources.files("storage") / "keeping" / "changes" / "migrations"
    database = Database(directory / CHANGES, schema)
    return Changes(database, keep_bytes=keep_bytes, keep_seconds=keep_days * _DAY)


class Changes:
    """Everybody's changes, and how roots were last seen; its calls block.

    Args:
        database: Where they are kept.
        keep_bytes: Bytes that the contents may have, as they are kept.
        keep_seconds: How old a change may become.
    """

    def __init__(self, database: Database, *, keep_bytes: int, keep_seconds: float) -> None:
        self._database = database
        self._keep_seconds = keep_seconds
        self.keep_bytes = keep_bytes

    def close(self) -> None:
        """Lets go of the file."""
        self._database.close()

    def own(self, identity: Identity) -> OwnChanges:
        """What one identity sees of them."""
        return OwnChanges(self._database, identity)

    def keep(
        self, root: str, by: Caller, difference: Difference, content: Mapping[str, bytes]
    ) -> int:
        """Keeps a change that is about to be made; it is on the disk when this returns.

        Args:
            root: The root.
            by: The call that makes it.
            difference: The change.
            content: What it replaces, packed, by its digest.

        Returns:
            Its number.
        """
        name, now = os.fsencode(root), time.time()
        with self._database.write() as connection:
            contents.add(connection, content)
            made = connection.execute(INSERT_CHANGE, change_values(by, now, name, difference))
            number = int(made.lastrowid or 0)
            if turn(connection, name, now):  # programs did not make it, whichever runs
                set_files(connection, name, {difference.path: difference.after})
            self._bound(connection, name, number)
        return number

    def withdraw(self, root: str, number: int, difference: Difference) -> None:
        """Removes a change that was not made after all."""
        name = os.fsencode(root)
        with self._database.write() as connection:
            connection.execute("DELETE FROM changes WHERE change_id = ?", (number,))
            if turn(connection, name, time.time()):
                set_files(connection, name, {difference.path: difference.before})
            contents.remove_unused(connection, [difference.before.state])

    def root_state(self, root: str, known: RootState | None) -> RootState:
        """How a root was last seen; the state that is known already where nothing is newer."""
        name = os.fsencode(root)
        with self._database.read() as connection:
            number = generation(connection, name)
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
        """Takes a look at a root for how it was last seen.

        It outlives the process at once, and a power failure after the next synchronised write: one
        for every program would cost more than the program.

        Args:
            root: The root.
            known: How it was seen before.
            observed: What the look found.
            differences: What changed, where somebody is to be named for it.
            by: Who made the changes.
            begins: A program that is started now.
            ends: One that has ended.

        Returns:
            The state now; None if another process was faster, so that nothing was taken.
        """
        name, now = os.fsencode(root), time.time()
        gone = [path for path in known.files if path not in observed.files]
        new = {
            path: state for path, state in observed.files.items() if known.files.get(path) != state
        }
        with self._database.write(synced=False) as connection:
            if generation(connection, name) != known.generation:
                return None
            number = known.generation
            if gone or new or not number:
                number = turn(connection, name, now, makes=True)
            contents.add(connection, observed.contents)
            set_files(connection, name, new)
            connection.executemany(
                "DELETE FROM files WHERE root = ? AND path = ?",
                ((name, os.fsencode(path)) for path in gone),
            )
            first = 0
            if by is not None and differences:
                first = _next_number(connection)
                connection.executemany(
                    INSERT_CHANGE,
                    (change_values(by, now, name, difference) for difference in differences),
                )
            begin_and_end(connection, name, now, begins, ends)
            replaced = {known.files[path].state for path in (*gone, *new) if path in known.files}
            contents.remove_unused(connection, replaced)
            self._bound(connection, name, first)
        return RootState(number, observed.files)

    def running(self, root: str) -> Caller | None:
        """The program that was started last of those that have not ended."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT * FROM programs WHERE root = ? ORDER BY time DESC LIMIT 1",
                (os.fsencode(root),),
            ).fetchone()
        return None if row is None else caller_of(row)

    def _bound(self, connection: sqlite3.Connection, root: bytes, first: int) -> None:
        """Removes what is too old or too much, but nothing of the change that is just made.

        How other roots were seen goes first: that is found again, an old content is not.
        """
        limit = first or _next_number(connection)
        idle = "root != ? AND root NOT IN (SELECT root FROM programs)"
        oldest = time.time() - self._keep_seconds
        row = connection.execute("SELECT min(change_id), time FROM changes").fetchone()
        if row[0] is not None and row["time"] < oldest:
            connection.execute(
                "DELETE FROM changes WHERE time < ? AND change_id < ?", (oldest, limit)
            )
            _forget_roots(connection, f"{idle} AND seen < ?", (root, oldest))
        if contents.total(connection) <= self.keep_bytes:
            return
        _forget_roots(connection, idle, (root,))
        while contents.total(connection) > self.keep_bytes:
            removed = connection.execute(
                "DELETE FROM changes WHERE change_id < ? AND change_id <= (SELECT min(change_id)"
                " + (max(change_id) - min(change_id)) / 10 FROM changes)",
                (limit,),
            )
            if not removed.rowcount:
                return
            contents.remove_unused(connection)


def _next_number(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT max(change_id) FROM changes").fetchone()
    return int(row[0] or 0) + 1


def _forget_roots(
    connection: sqlite3.Connection, condition: str, values: tuple[object, ...]
) -> None:
    """Forgets how some roots were seen, and all contents that nothing needs."""
    connection.execute(
        f"DELETE FROM files WHERE root IN (SELECT root FROM roots WHERE {condition})", values
    )
    connection.execute(f"DELETE FROM roots WHERE {condition}", values)
    contents.remove_unused(connection)
