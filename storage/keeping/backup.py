"""Backups of the record: makes a consistent copy while servers write, and restores it.

The copy is SQLite's online backup (https://sqlite.org/c3ref/backup_finish.html) on a connection
that holds its snapshot. In WAL mode a reader blocks no writer, and while the snapshot is held a
write elsewhere does not restart the copy. `VACUUM INTO` blocks no writer either, but reports no
progress, cannot be cancelled, and took half as long again for 90 MB.

Only the record is copied: the vector index is rebuilt from it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from storage.database import RECORD, Database
from storage.errors import BackupError
from storage.keeping.atomic import (
    atomic_file,
    atomic_folder,
    free_name,
    is_temporary,
    reason,
    write_errors,
)
from storage.keeping.lost import connect_readonly, note_backup
from storage.keeping.schema import check_schema

OnCopied = Callable[[int, int], None]
"""Called with (done, total) pages; may raise to cancel, and nothing is left behind."""

COPY_PAGES = 1024  # pages between two reports: 4 MB, some milliseconds

_TABLES = {"meta", "contexts", "embeddings", "vector_outbox"}
"""Tables that every record has had since the first schema."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A completed backup."""

    path: Path
    size: int  # in bytes
    contexts: int


def back_up(
    database: Database, target: Path, *, force: bool = False, on_copied: OnCopied | None = None
) -> Backup:
    """Copies the record to a private file, as of one moment, and checks the copy."""
    target = target.absolute()
    with write_errors(target):
        _check_target(target, database.path.parent, force=force)
    with write_errors(target), atomic_file(target, replace=force) as copy:
        with database.read() as connection:
            contexts = connection.execute(
                "SELECT count(*) FROM contexts WHERE context_type NOT IN ('profile', 'entity')"
            ).fetchone()[0]
            with write_errors(target):
                _copy(connection, copy, on_copied)
        _check(copy, f"The record in {database.path}")
        size = copy.stat().st_size
    note_backup(database.path.parent, target)
    return Backup(target, size, contexts)


def restore(
    backup: Path, directory: Path, *, force: bool = False, on_copied: OnCopied | None = None
) -> Path | None:
    """Restores a backup; `force` moves an existing directory aside, and returns its new path."""
    directory = Path(os.path.realpath(directory))
    with write_errors(directory):
        taken = directory.exists() and not all(map(is_temporary, directory.iterdir()))
    if taken and not force:
        raise BackupError(
            f"{directory} is not empty.",
            suggestions=("Name another one with --data-dir, or --force: it is moved aside.",),
        )
    with _open_backup(backup) as connection, write_errors(directory):
        if not taken:
            with _create_directory(directory):
                _fill(connection, directory, backup, on_copied)
            return None
        aside = free_name(directory, "until")
        try:
            with atomic_folder(directory) as folder:
                _fill(connection, folder, backup, on_copied)
                directory.rename(aside)
        except BaseException:
            if aside.exists() and not directory.exists():
                aside.rename(directory)
            raise
        return aside


@contextmanager
def _create_directory(directory: Path) -> Iterator[None]:
    """Creates a directory, and removes it again if the block fails."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield
    except BaseException:
        with suppress(OSError):  # another process may have filled it meanwhile
            for each in missing:
                each.rmdir()
        raise


def _fill(
    connection: sqlite3.Connection, folder: Path, backup: Path, on_copied: OnCopied | None
) -> None:
    with atomic_file(folder / RECORD, replace=False) as copy:
        _copy(connection, copy, on_copied)
        _check(copy, str(backup))
        with closing(sqlite3.connect(copy)) as restored:
            # A new name on a Chroma server, where the original library may still be in use.
            restored.execute("DELETE FROM meta WHERE key = 'library'")
            restored.commit()
    note_backup(folder, backup.absolute())


def _copy(source: sqlite3.Connection, target: Path, on_copied: OnCopied | None) -> None:
    def report(_status: int, remaining: int, total: int) -> None:
        if on_copied is not None:
            on_copied(total - remaining, total)

    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")  # a failed copy is discarded
        copy.execute("PRAGMA synchronous = OFF")  # a complete copy is synced as a whole
        source.backup(copy, pages=COPY_PAGES, progress=report)
        copy.execute("PRAGMA journal_mode = DELETE")  # a single file, readable on read-only disks


def _check(copy: Path, source: str) -> None:
    try:
        with closing(sqlite3.connect(copy)) as connection:
            verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        verdict = str(error)
    if verdict != "ok":
        raise BackupError(
            f"{source} is damaged: {verdict}.",
            suggestions=("Keep the current data, and restore the newest intact backup.",),
        )


@contextmanager
def _open_backup(backup: Path) -> Iterator[sqlite3.Connection]:
    """Opens a backup for reading and checks that it is one."""
    try:
        backup = backup.resolve(strict=True)
        with closing(connect_readonly(backup)) as connection:
            connection.execute("BEGIN")
            _check_contents(connection, backup)
            yield connection
    except (OSError, sqlite3.Error) as error:
        raise BackupError(
            f"{backup} cannot be restored: {reason(error)}.",
            suggestions=("Name the file of a backup.",),
        ) from error


def _check_contents(connection: sqlite3.Connection, backup: Path) -> None:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if not tables >= _TABLES:
        raise BackupError(
            f"{backup} is not a Toolcrib backup.", suggestions=("Name the file of a backup.",)
        )
    check_schema(connection, backup)


def _check_target(target: Path, data: Path, *, force: bool) -> None:
    if Path(os.path.realpath(target.parent)).is_relative_to(os.path.realpath(data)):
        raise BackupError(
            f"{target} is inside the data directory itself.",
            suggestions=("Name a place that would not be lost together with it.",),
        )
    if target.is_dir():
        raise BackupError(f"{target} is a directory.", suggestions=("Name a file in it.",))
    if os.path.lexists(target) and not force:
        raise BackupError(
            f"{target} exists.", suggestions=("Name another file, or --force to replace it.",)
        )
