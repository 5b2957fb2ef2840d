"""The record: one SQLite file in WAL mode, its schema, connections and identity conditions."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from queue import Empty, LifoQueue

from storage.errors import StorageError, StorageUnavailableError
from storage.keeping.lost import advice_on, check_record, connect_readonly, problem_of
from storage.keeping.schema import check_schema, migrate, migrations_in
from storage.locks import locked
from storage.models import Identity

RECORD = "toolcrib.db"  # the name of the record in a data directory
BUSY_TIMEOUT_MS = 10_000  # how long a write waits for another process's write

CACHE_KIB = 16_000
"""Each connection's page cache; with SQLite's default of 2,000 each search reads the pages again.
"""

MOST_IDLE = 8  # connections kept for the next use; each may fill its page cache

_NAME = "library"
_KEYS = ("user_id", "device_id", "agent_id")


class Database:
    """The SQLite record of one data directory.

    Reads run in parallel, each on its own connection. Writes of this process take turns; writes of
    other processes are waited for up to `BUSY_TIMEOUT_MS`. Once a write returns, the disk has
    confirmed it.

    If writing is impossible (a read-only or full disk, missing permission), a file of the newest
    schema can still be read; every write then fails with the reason, which is in `unwritable`. The
    directory is created, readable by its owner only. `schema` is the folder of the migrations, by
    default that of the record.
    """

    def __init__(self, path: Path, schema: Traversable | None = None) -> None:
        self.path = path
        self.unwritable = ""
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._write_turn = threading.Lock()
        with self._translate_errors():
            try:
                self._set_up(migrations_in(schema), is_record=schema is None)
            except (OSError, sqlite3.OperationalError) as error:
                self.close()
                self.unwritable = problem_of(error, path)
                if "locked" in self.unwritable or not self._is_readable(migrations_in(schema)):
                    raise
            except BaseException:
                self.close()
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Opens a connection that sees one consistent snapshot until the block ends."""
        with self._translate_errors(), self._reading() as connection:
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def write(self, *, synced: bool = True) -> Iterator[sqlite3.Connection]:
        """Opens a connection whose changes are committed together when the block ends.

        If not `synced`, they survive the process, but maybe not a power failure, until the next
        synced write (SQLite, PRAGMA synchronous, NORMAL in WAL mode).
        """
        with self._translate_errors(), self._write_turn, self._connection() as connection:
            if not synced:
                connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
            self.unwritable = ""

    def rows(self, query: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        """Returns the rows of one query."""
        with self.read() as connection:
            return connection.execute(query, values).fetchall()

    def change(self, statement: str, values: Sequence[object]) -> int:
        """Commits one statement, and returns the number of changed rows."""
        with self.write() as connection:
            return connection.execute(statement, values).rowcount

    def get_meta(self, key: str) -> str | None:
        """Returns a value of the data directory's metadata, or None."""
        rows = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None

    def set_meta(self, key: str, value: str) -> None:
        """Stores a value in the data directory's metadata."""
        self.change("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    @property
    def name(self) -> str:
        """A unique name of this library, because several may share a Chroma server."""
        if self.get_meta(_NAME) is None:
            self.change(
                "INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)",
                (_NAME, f"toolcrib-{uuid.uuid4().hex[:16]}"),
            )
        return str(self.get_meta(_NAME))  # another process may have been first

    def compact(self) -> None:
        """Rewrites the whole file without deleted data; writers wait meanwhile."""
        with self._translate_errors(), self._write_turn, self._connection() as connection:
            connection.execute("VACUUM")

    def fold_log(self) -> bool:
        """Empties the write-ahead log, and returns False if another connection prevents it."""
        with self._translate_errors(), self._connection() as connection:
            log = self.path.with_name(f"{self.path.name}-wal")
            if not log.exists() or not log.stat().st_size:
                return True
            connection.execute("PRAGMA busy_timeout = 0")  # waiting would block every writer
            try:
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        return not busy

    def close(self) -> None:
        """Closes the idle connections; the last one to close folds the WAL into the file."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    def _set_up(self, migrations: dict[int, Traversable], *, is_record: bool) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.path.with_name("setup.lock"), wait=True):
            if is_record:
                check_record(self.path)
            _create(self.path)
            self._file = self.path.stat()
            with self._connection() as connection:
                version = check_schema(connection, self.path, migrations)
                # The file keeps this setting. If two processes change it at once, SQLite fails one
                # without calling the busy handler.
                connection.execute("PRAGMA journal_mode = WAL")
                migrate(connection, migrations, version)

    def _is_readable(self, migrations: dict[int, Traversable]) -> bool:
        """Returns whether an unwritable file exists and has the newest schema."""
        try:
            self._file = self.path.stat()
            with closing(connect_readonly(self.path)) as connection:
                found = check_schema(connection, self.path, migrations)
        except (OSError, sqlite3.Error):
            return False
        return found == max(migrations)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Opens a connection in a read transaction; a read-only one if writing is impossible."""
        with ExitStack() as held:
            try:
                connection = held.enter_context(self._connection())
                _begin_reading(connection)
            except sqlite3.OperationalError:
                if not self.unwritable:
                    raise
                # A new connection each time, so that the snapshot is not older than this read.
                connection = held.enter_context(closing(connect_readonly(self.path)))
                connection.row_factory = sqlite3.Row
                _begin_reading(connection)
            yield connection

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        self._check_file()
        try:
            connection = self._idle.get_nowait()
        except Empty:
            connection = self._connect()
        try:
            yield connection
        finally:
            if connection.in_transaction:  # a commit that failed leaves its transaction open
                connection.rollback()
            connection.execute("PRAGMA synchronous = FULL")
            if self._idle.qsize() < MOST_IDLE:
                self._idle.put(connection)
            else:
                connection.close()

    def _check_file(self) -> None:
        """Raises if the file was removed or replaced, since its data would be lost on exit."""
        with suppress(FileNotFoundError, NotADirectoryError):
            if os.path.samestat(self.path.stat(), self._file):
                return
        raise StorageUnavailableError(
            f"{self.path} was removed or replaced while it was in use; nothing was changed.",
            suggestions=("Restart Toolcrib.",),
        )

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
        connection.row_factory = sqlite3.Row
        try:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = {-CACHE_KIB}")
            connection.execute("PRAGMA foreign_keys = ON")
            # FAST would leave old data on pages that became free as a whole. In a library of 64 MB
            # a deletion takes 1 ms either way, 600 at once 0.19 s instead of 0.13 s. See
            # storage/keeping/erasure.py.
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translates errors of the disk and of SQLite to StorageUnavailableError with advice."""
        try:
            yield
        except StorageError:
            raise
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError):
                raise  # our bug, not the disk's
            problem = self.unwritable or problem_of(error, self.path)
            raise StorageUnavailableError(
                f"{self.path}: {problem}.", suggestions=advice_on(problem, self.path)
            ) from error


def _begin_reading(connection: sqlite3.Connection) -> None:
    """Begins a transaction and reads once, so that the snapshot is taken now or refused."""
    connection.execute("BEGIN")
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        connection.rollback()
        raise


def _create(path: Path) -> None:
    """Creates the file with private permissions before SQLite would make it world-readable.

    An existing file is not opened: closing it would drop the locks that this process may hold on it
    (https://sqlite.org/howtocorrupt.html, 2.2).
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


@dataclass(frozen=True, slots=True)
class Where:
    """A SQL condition and the values of its placeholders."""

    sql: str
    values: tuple[object, ...]
    narrows: bool = False  # whether it restricts more than the owner
    few: str = ""  # a form that is faster for few rows, with the same values; empty: `sql` itself

    @classmethod
    def every(cls, parts: Sequence[Where]) -> Where:
        """Returns the condition that all of some conditions hold."""
        values = tuple(value for part in parts for value in part.values)
        return cls(" AND ".join(part.sql for part in parts), values)


def identity_clause(identity: Identity, alias: str) -> Where:
    """Returns the condition for rows an identity sees; an empty device or agent matches any."""
    clauses, values = [f"{alias}.user_id = ?"], [identity.user_id]
    for column in _KEYS[1:]:
        wanted = getattr(identity, column)
        if wanted:
            clauses.append(f"{alias}.{column} = ?")
            values.append(wanted)
    return Where(" AND ".join(clauses), tuple(values), narrows=len(clauses) > 1)


def exactly(identity: Identity, alias: str) -> Where:
    """Returns the condition for rows of `alias` stored under exactly this identity."""
    sql = " AND ".join(f"{alias}.{column} = ?" for column in _KEYS)
    return Where(sql, tuple(getattr(identity, column) for column in _KEYS))


@dataclass(frozen=True, slots=True)
class View:
    """The record as one identity sees it, during one transaction."""

    connection: sqlite3.Connection
    identity: Identity

    @property
    def user_id(self) -> str:
        """The user."""
        return self.identity.user_id

    @property
    def owner(self) -> dict[str, object]:
        """The columns of the identity, for a new row."""
        own = self.identity  # `asdict` would take five times as long
        return {"user_id": own.user_id, "device_id": own.device_id, "agent_id": own.agent_id}

    def seen(self, alias: str) -> Where:
        """Returns the condition for rows that the identity sees."""
        return identity_clause(self.identity, alias)

    def own(self, alias: str) -> Where:
        """Returns the condition for rows stored under exactly this identity."""
        return exactly(self.identity, alias)

    def rows(self, query: str, values: Sequence[object]) -> list[sqlite3.Row]:
        """Returns the rows of a query."""
        return self.connection.execute(query, values).fetchall()

    def row(self, query: str, values: Sequence[object]) -> sqlite3.Row | None:
        """Returns the first row of a query; None if there is none."""
        row: sqlite3.Row | None = self.connection.execute(query, values).fetchone()
        return row


def identity_of(row: sqlite3.Row) -> Identity:
    """Returns the owner of a row."""
    return Identity(row["user_id"], row["device_id"], row["agent_id"])


def insert_row(
    connection: sqlite3.Connection, table: str, row: Mapping[str, object], *, replace: bool = False
) -> int:
    """Inserts a row and returns its seq; a `seq` of None means the next one."""
    cursor = connection.execute(
        f"INSERT {'OR REPLACE ' if replace else ''}INTO {table} ({', '.join(row)})"
        f" VALUES ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )
    return int(cursor.lastrowid or 0)


def update_row(
    connection: sqlite3.Connection, table: str, row: Mapping[str, object], key: Mapping[str, object]
) -> None:
    """Updates the row with a key."""
    given = ", ".join(f"{column} = ?" for column in row)
    found = " AND ".join(f"{column} = ?" for column in key)
    connection.execute(f"UPDATE {table} SET {given} WHERE {found}", (*row.values(), *key.values()))
