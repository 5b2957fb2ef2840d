"""The record: one SQLite file in WAL mode, its schema and connections, and whose its rows are."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from queue import Empty, LifoQueue

from storage.errors import SchemaTooNewError, StorageError, StorageUnavailableError
from storage.keeping.lost import check_record, restorable
from storage.keeping.readonly import connect_readonly
from storage.locks import locked
from storage.models import Identity

RECORD = "toolcrib.db"
"""The name of the record in a data directory."""

BUSY_TIMEOUT_MS = 10_000
"""How long a write waits for another process's write before it gives up."""

CACHE_KIB = 16_000
"""Pages that a connection keeps at most; with SQLite's own 2,000 each search reads them anew."""

LEAST_BYTES = 65_536
"""Free bytes below which a disk is full: the index of the write-ahead log takes half of them."""

DAMAGED = "The file is damaged: move it away or restore a backup."

_NAME = "library"
_KEYS = ("user_id", "device_id", "agent_id")


class Database:
    """The SQLite record of one data directory.

    Reads run side by side, each on a connection of its own; writes of this process wait for each
    other in turn, those of other processes for `BUSY_TIMEOUT_MS`. A write that has returned has
    been synchronised to the disk.

    Args:
        path: The database file; its directory is created, readable by its owner only.
        schema: The folder of its migrations; that of the record by default.

    Where nothing can be written, on a read-only or a full disk or without the right to, a file of
    the newest schema is read all the same; every write says what refuses it.

    Attributes:
        path: The database file.
        unwritable: Why nothing could be written when it was opened; empty where it could.

    Raises:
        SchemaTooNewError: If a newer version of Toolcrib wrote the file.
        StorageUnavailableError: If the directory or the file cannot be used, or the file is gone
            from a directory that was in use.
    """

    def __init__(self, path: Path, schema: Traversable | None = None) -> None:
        self.path = path
        self.unwritable = ""
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._write_turn = threading.Lock()
        with self._translated():
            try:
                self._set_up(_migrations(schema), is_record=schema is None)
            except (OSError, sqlite3.OperationalError) as error:
                self.close()
                self.unwritable = _problem(error, path)
                if "locked" in self.unwritable or not self._is_readable(len(_migrations(schema))):
                    raise
            except BaseException:
                self.close()
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one consistent snapshot until the block ends."""
        with self._translated(), self._reading() as connection:
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def write(self, *, synced: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are committed when the block ends, all or none.

        Args:
            synced: Whether the disk has confirmed them by then. Else they outlive the process, but
                maybe not a power failure, until the next write that is (SQLite, PRAGMA
                synchronous, NORMAL in WAL mode).
        """
        with self._translated(), self._write_turn, self._connection() as connection:
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

    def get_meta(self, key: str) -> str | None:
        """A fact about the data directory, or None."""
        with self.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    @property
    def name(self) -> str:
        """A name that no other library has: several may share a Chroma server."""
        if self.get_meta(_NAME) is None:
            with self.write() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)",
                    (_NAME, f"toolcrib-{uuid.uuid4().hex[:16]}"),
                )
        return str(self.get_meta(_NAME))  # another process may have been first

    def compact(self) -> None:
        """Writes the whole file anew, without what was deleted; writers wait meanwhile."""
        with self._translated(), self._write_turn, self._connection() as connection:
            connection.execute("VACUUM")

    def fold_log(self) -> bool:
        """Folds the write-ahead log into the file and empties it: what was deleted is in neither.

        Returns:
            Whether nobody stood in the way: while another reads or writes, the log stays.
        """
        with self._translated(), self._connection() as connection:
            log = self.path.with_name(f"{self.path.name}-wal")
            if not log.exists() or not log.stat().st_size:
                return True
            connection.execute("PRAGMA busy_timeout = 0")  # waiting, it would hold up every writer
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

    def _set_up(self, migrations: list[Traversable], *, is_record: bool) -> None:
        """Makes the file where it is missing, and brings its schema up to date."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.path.with_name("setup.lock"), wait=True):
            if is_record:
                check_record(self.path)
            _create(self.path)
            self._file = self.path.stat()
            with self._connection() as connection:
                # Kept by the file. Of two that change it at once SQLite lets one fail unheard.
                connection.execute("PRAGMA journal_mode = WAL")
                _migrate(connection, self.path, migrations)

    def _is_readable(self, schema: int) -> bool:
        """Whether a file that cannot be written is there, and needs no change to be read."""
        try:
            self._file = self.path.stat()
            with closing(connect_readonly(self.path)) as connection:
                found = connection.execute("PRAGMA user_version").fetchone()[0]
        except (OSError, sqlite3.Error):
            return False
        return bool(found == schema)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction that reads; one of its own where nothing can be written."""
        with ExitStack() as held:
            try:
                connection = held.enter_context(self._connection())
                _begin_reading(connection)
            except sqlite3.OperationalError:
                if not self.unwritable:
                    raise
                # Each time anew: what it reads must not be older than this reading.
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
            self._idle.put(connection)

    def _check_file(self) -> None:
        """Refuses to go on in a file without a name, which is gone when the process ends."""
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
            # FAST would leave what stood on pages that fell free as a whole. In a library of 64 MB
            # a deletion takes 1 ms either way, 600 at once 0.19 s instead of 0.13 s. See
            # storage/erasure.
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns what the disk and SQLite refuse into an error with advice."""
        try:
            yield
        except StorageError:
            raise
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError):
                raise  # a defect of ours, not of the disk
            problem = self.unwritable or _problem(error, self.path)
            advice = [_advice(problem)]
            if advice == [DAMAGED]:
                advice += restorable(self.path)
            raise StorageUnavailableError(f"{self.path}: {problem}.", suggestions=advice) from error


def _problem(error: OSError | sqlite3.Error, path: Path) -> str:
    """What is wrong; a full disk is an "I/O error" to SQLite where the log's index has no room."""
    if "I/O error" in str(error) and shutil.disk_usage(path.parent).free < LEAST_BYTES:
        return os.strerror(errno.ENOSPC)
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _begin_reading(connection: sqlite3.Connection) -> None:
    """Begins a transaction and has it see the file as it is now, or be refused."""
    connection.execute("BEGIN")
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        connection.rollback()
        raise


def _create(path: Path) -> None:
    """Makes the file private before SQLite would make it for all to read.

    A file that exists is not opened: closing it would drop the locks that this process may hold on
    it (https://sqlite.org/howtocorrupt.html, 2.2).
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def newest_schema() -> int:
    """The version of the schema that this program writes."""
    return len(_migrations(None))


def _migrations(folder: Traversable | None) -> list[Traversable]:
    folder = folder or resources.files("storage") / "migrations"
    return sorted(
        (item for item in folder.iterdir() if item.name.endswith(".sql")),
        key=lambda item: item.name,
    )


def _migrate(connection: sqlite3.Connection, path: Path, migrations: list[Traversable]) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(migrations):
        raise SchemaTooNewError(
            f"{path} has schema {version}; this version of Toolcrib knows up to {len(migrations)}.",
            suggestions=("Upgrade Toolcrib, or choose another data directory.",),
        )
    if version == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    for migration in migrations[version:]:
        for statement in _statements(migration.read_text(encoding="utf-8")):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(migrations)}")
    connection.commit()


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit our transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _advice(problem: str) -> str:
    problem = problem.casefold()
    if "full" in problem or "no space" in problem:
        return "Free some disk space and try again; nothing was changed."
    if (
        "read-only" in problem
        or "readonly" in problem
        or "denied" in problem
        or "unable to open" in problem
    ):
        return "Give yourself write permission on the data directory, or choose another one."
    if "locked" in problem or "busy" in problem:
        return "Another process is writing; try again in a moment."
    if "is a directory" in problem or "not a directory" in problem or "file exists" in problem:
        return "Move away what stands in its place, or choose another data directory."
    if "malformed" in problem or "not a database" in problem:
        return DAMAGED
    return "Check the disk and the data directory's permissions."


@dataclass(frozen=True, slots=True)
class Where:
    """A condition and its values.

    Attributes:
        sql: The condition; placeholders are `?`.
        values: What the placeholders stand for, in order.
        narrows: Whether it asks for more than whose contexts they are.
        few: The condition as it is best asked about few rows, where `sql` begins with a list of all
            that have some name; the values are the same.
    """

    sql: str
    values: tuple[object, ...]
    narrows: bool = False
    few: str = ""


def identity_clause(identity: Identity, alias: str) -> Where:
    """Returns which rows of `alias` an identity may see; an empty device or agent means any."""
    clauses, values = [f"{alias}.user_id = ?"], [identity.user_id]
    for column in _KEYS[1:]:
        wanted = getattr(identity, column)
        if wanted:
            clauses.append(f"{alias}.{column} = ?")
            values.append(wanted)
    return Where(" AND ".join(clauses), tuple(values), narrows=len(clauses) > 1)


def exactly(identity: Identity, alias: str) -> Where:
    """Returns which rows of `alias` were stored under exactly this identity."""
    sql = " AND ".join(f"{alias}.{column} = ?" for column in _KEYS)
    return Where(sql, tuple(getattr(identity, column) for column in _KEYS))
