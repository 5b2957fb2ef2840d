"""The file changes of one identity."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from storage.database import Database, Where, identity_clause
from storage.keeping.changes import contents
from storage.keeping.changes.models import Change
from storage.keeping.changes.rows import change_of
from storage.models import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """Selects changes in a root."""

    root: str
    session_id: str | None = None
    call: str = ""
    ids: Sequence[int] | None = None
    since: float | None = None  # only changes made since then, Unix seconds
    until: float | None = None
    path: str = ""

    def conditions(self) -> Iterator[tuple[str, Sequence[object]]]:
        """Yields each SQL condition with its values."""
        yield "root = ?", (os.fsencode(self.root),)
        if self.session_id is not None:
            yield "session_id = ?", (self.session_id,)
        if self.call:
            yield "substr(call, 1, ?) = ?", (len(self.call), self.call)
        if self.ids is not None:
            yield f"change_id IN ({', '.join('?' * len(self.ids))})", self.ids
        if self.since is not None:
            yield "time >= ?", (self.since,)
        if self.until is not None:
            yield "time <= ?", (self.until,)
        if self.path:
            name = os.fsencode(self.path)
            yield "(path = ? OR substr(path, 1, ?) = ?)", (name, len(name) + 1, name + b"/")


@dataclass(frozen=True, slots=True)
class OwnChanges:
    """Reads and removes the changes of one identity only."""

    database: Database
    identity: Identity  # the owner; an empty device or agent matches any of the user's

    def find(self, wanted: ChangeFilter, limit: int = -1) -> list[Change]:
        """Returns the selected changes, newest first, up to the limit; -1 for all."""
        where = self._where(wanted)
        with self.database.read() as connection:
            rows = connection.execute(
                f"SELECT * FROM changes WHERE {where.sql} ORDER BY change_id DESC LIMIT ?",
                (*where.values, limit),
            ).fetchall()
        return list(map(change_of, rows))

    def content(self, change: Change) -> bytes | None:
        """Returns the content that a change replaced; None if it is no longer stored."""
        with self.database.read() as connection:
            return contents.read(connection, change.before.state)

    def has_content(self, change: Change) -> bool:
        """Returns whether the content that a change replaced is still stored."""
        with self.database.read() as connection:
            row = connection.execute(
                "SELECT 1 FROM contents WHERE digest = ?", (change.before.state,)
            ).fetchone()
        return row is not None

    def forget(self, wanted: ChangeFilter) -> int:
        """Deletes changes permanently and returns how many.

        The last known state of the root is deleted too; the next program triggers a new scan.
        """
        where = self._where(wanted)
        with self.database.write() as connection:
            removed = connection.execute(f"DELETE FROM changes WHERE {where.sql}", where.values)
            for table in ("files", "roots", "programs"):
                connection.execute(
                    f"DELETE FROM {table} WHERE root = ?", (os.fsencode(wanted.root),)
                )
            contents.remove_unused(connection)
        self.database.compact()
        self.database.fold_log()
        return removed.rowcount

    def _where(self, wanted: ChangeFilter) -> Where:
        own = identity_clause(self.identity, "changes")
        conditions = [(own.sql, own.values), *wanted.conditions()]
        return Where(
            " AND ".join(sql for sql, _ in conditions),
            tuple(value for _, values in conditions for value in values),
        )
