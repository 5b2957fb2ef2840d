"""File states, changes and their rows, contents by SHA-256, and the changes of one identity."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from storage.database import Database, Where, identity_clause, identity_of
from storage.models import Identity


class FileState(NamedTuple):
    """The state of a path."""

    state: str  # a content's SHA-256, "link:…", "large:…", "directory", "other"; empty: nothing
    mode: int  # a file's mode, as in stat(2); 0 if unknown or irrelevant
    why: str = ""  # why its content is not stored; empty if it is, or if nothing exists
    signature: str = ""  # changes with the file; empty: only reading it can tell

    @property
    def is_file(self) -> bool:
        """Whether it is a file whose content is stored."""
        return bool(self.state) and not self.why

    def same_as(self, other: FileState) -> bool:
        """Returns whether two states mean the same content and mode."""
        is_mode_same = not self.mode or not other.mode or self.mode == other.mode
        return self.state == other.state and is_mode_same


ABSENT = FileState("", 0)


class Difference(NamedTuple):
    """A path that changed."""

    path: str  # relative to the root, without links; undecodable bytes as Python decodes them
    before: FileState
    after: FileState


@dataclass(frozen=True, slots=True)
class Caller:
    """A call that changes files."""

    call: str
    identity: Identity
    session_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class Change:
    """A stored change."""

    id: int  # its number; later ones have higher numbers
    time: float  # when it was made, Unix seconds
    by: Caller
    path: str
    before: FileState
    after: FileState


@dataclass(frozen=True, slots=True)
class RootState:
    """The last known state of a root."""

    generation: int
    files: Mapping[str, FileState]  # including skipped paths, with the reason


@dataclass(slots=True)
class Observed:
    """The result of scanning a root."""

    files: dict[str, FileState] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)  # packed, by their SHA-256


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

    def conditions(self) -> Iterator[Where]:
        """Yields each SQL condition."""
        yield Where("root = ?", (os.fsencode(self.root),))
        if self.session_id is not None:
            yield Where("session_id = ?", (self.session_id,))
        if self.call:
            yield Where("substr(call, 1, ?) = ?", (len(self.call), self.call))
        if self.ids is not None:
            yield Where(f"change_id IN ({', '.join('?' * len(self.ids))})", tuple(self.ids))
        if self.since is not None:
            yield Where("time >= ?", (self.since,))
        if self.until is not None:
            yield Where("time <= ?", (self.until,))
        if self.path:
            name = os.fsencode(self.path)
            inside = (name, len(name) + 1, name + b"/")
            yield Where("(path = ? OR substr(path, 1, ?) = ?)", inside)


@dataclass(frozen=True, slots=True)
class OwnChanges:
    """Reads and removes the changes of one identity only."""

    database: Database
    identity: Identity  # the owner; an empty device or agent matches any of the user's

    def find(self, wanted: ChangeFilter, limit: int = -1) -> list[Change]:
        """Returns the selected changes, newest first, up to the limit; -1 for all."""
        where = self._where(wanted)
        found = f"SELECT * FROM changes WHERE {where.sql} ORDER BY change_id DESC LIMIT ?"
        return list(map(change_of, self.database.rows(found, (*where.values, limit))))

    def content(self, change: Change) -> bytes | None:
        """Returns the content that a change replaced; None if it is no longer stored."""
        with self.database.read() as connection:
            return read_content(connection, change.before.state)

    def has_content(self, change: Change) -> bool:
        """Returns whether the content that a change replaced is still stored."""
        found = "SELECT 1 FROM contents WHERE digest = ?"
        return bool(self.database.rows(found, (change.before.state,)))

    def forget(self, wanted: ChangeFilter) -> int:
        """Deletes changes and the last known state of the root; returns the number of changes."""
        where = self._where(wanted)
        with self.database.write() as connection:
            removed = connection.execute(f"DELETE FROM changes WHERE {where.sql}", where.values)
            for table in ("files", "roots", "programs"):
                connection.execute(
                    f"DELETE FROM {table} WHERE root = ?", (os.fsencode(wanted.root),)
                )
            remove_unused_contents(connection)
        self.database.compact()
        self.database.fold_log()
        return removed.rowcount

    def _where(self, wanted: ChangeFilter) -> Where:
        own = identity_clause(self.identity, "changes")
        return Where.every([own, *wanted.conditions()])


CALLER = "user_id, device_id, agent_id, session_id, tool"

INSERT_CHANGE = (
    f"INSERT INTO changes (call, time, {CALLER}, root, path, before, before_mode, why, after,"
    " after_mode) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def caller_values(caller: Caller, time: float) -> tuple[object, ...]:
    """Returns a call and its time as the leading columns of the tables that have them."""
    own = caller.identity
    return (
        *(caller.call, time, own.user_id, own.device_id, own.agent_id),
        *(caller.session_id, caller.tool),
    )


def caller_of(row: sqlite3.Row) -> Caller:
    """Builds the caller of a row."""
    return Caller(row["call"], identity_of(row), row["session_id"], row["tool"])


def change_values(
    caller: Caller, time: float, root: bytes, difference: Difference
) -> tuple[object, ...]:
    """Returns the values for `INSERT_CHANGE`."""
    path, before, after = difference
    return (
        *caller_values(caller, time),
        *(root, os.fsencode(path)),
        *(before.state, before.mode, before.why, after.state, after.mode),
    )


def change_of(row: sqlite3.Row) -> Change:
    """Builds the change of a row."""
    return Change(
        id=row["change_id"],
        time=row["time"],
        by=caller_of(row),
        path=os.fsdecode(row["path"]),
        before=FileState(row["before"], row["before_mode"], row["why"]),
        after=FileState(row["after"], row["after_mode"]),
    )


def file_of(row: Any) -> tuple[str, FileState]:  # noqa: ANN401  # a row, which unpacks as a tuple
    """Returns the path and the state of a row of `files`."""
    path, *state = row
    return os.fsdecode(path), FileState(*state)


_UNUSED = (
    "NOT EXISTS (SELECT 1 FROM changes WHERE before = digest)"
    " AND NOT EXISTS (SELECT 1 FROM files WHERE state = digest)"
)


def pack(content: bytes) -> bytes:
    """Compresses a content at the lowest level, which costs a tenth of the highest."""
    return zlib.compress(content, 1)


def add_contents(connection: sqlite3.Connection, packed: Mapping[str, bytes]) -> None:
    """Stores contents, each once."""
    connection.executemany(
        "INSERT INTO contents (digest, packed) VALUES (?, ?) ON CONFLICT DO NOTHING", packed.items()
    )


def read_content(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """Returns the content of a digest; None if it is not stored."""
    row = connection.execute("SELECT packed FROM contents WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else zlib.decompress(row["packed"])


def remove_unused_contents(
    connection: sqlite3.Connection, digests: Iterable[str] | None = None
) -> None:
    """Removes contents that no change and no root needs: some digests, or all."""
    if digests is None:
        connection.execute(f"DELETE FROM contents WHERE {_UNUSED}")
        return
    connection.executemany(
        f"DELETE FROM contents WHERE digest = ? AND {_UNUSED}", ((each,) for each in digests)
    )


def content_bytes(connection: sqlite3.Connection) -> int:
    """Returns the bytes of all contents, compressed."""
    return int(connection.execute("SELECT bytes FROM totals").fetchone()[0])
