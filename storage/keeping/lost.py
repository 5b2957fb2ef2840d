"""Describes problems of a record, reads one that cannot be written, and finds its backups.

`backups.jsonl` in the data directory lists the files that backups were written to: a user who lost
the record seldom knows where they are.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from storage.errors import StorageUnavailableError

NOTES = "backups.jsonl"

LEAST_BYTES = 65_536
"""Below this many free bytes a disk counts as full: the index of the WAL takes half of them."""

DAMAGED = "The file is damaged: move it away or restore a backup."

MOST_NAMED = 5  # maximum backups that an error lists, newest first

_LEFT_BY_A_RECORD = ("chroma", "indexer.lock", "changes.db", NOTES)
"""Files that appear in a data directory only after its record."""

_SQLITE_MAGIC = b"SQLite format 3\0"


def check_record(record: Path) -> None:
    """Raises if a record is missing or empty although there was a library."""
    if record.exists() and record.stat().st_size:
        return
    log = record.with_name(f"{record.name}-wal")
    left = [each.name for each in map(record.with_name, _LEFT_BY_A_RECORD) if _is_filled(each)]
    left += [log.name] if log.exists() and log.stat().st_size else []
    if left:
        raise StorageUnavailableError(
            f"{record} is {'empty' if record.exists() else 'missing'}, but {left[0]} next to it"
            " belongs to a library that was stored there; nothing was changed.",
            suggestions=(
                *(restorable(record) or ["Restore a backup: `toolcrib restore FILE --force`."]),
                f"To begin a new library, move {record.parent} away or choose another --data-dir.",
            ),
        )


def restorable(record: Path) -> list[str]:
    """Returns a restore command for each of the newest backups found, one per line."""
    found = []
    for path in dict.fromkeys([*_read_notes(record.parent), *_siblings(record.parent)]):
        with suppress(OSError, sqlite3.Error, ValueError):
            found.append((path.stat().st_mtime, path, _count(path)))
    return [
        f"Restore the backup of {datetime.fromtimestamp(time):%Y-%m-%d %H:%M} with"  # noqa: DTZ006  # the time on the wall
        f" {count} contexts: `toolcrib restore {path} --force`."
        for time, path, count in sorted(found, reverse=True)[:MOST_NAMED]
    ]


def note_backup(directory: Path, backup: Path) -> None:
    """Writes down the path of a backup, unless the disk refuses."""
    if backup not in _read_notes(directory):
        with suppress(OSError), (directory / NOTES).open("a", encoding="utf-8") as notes:
            notes.write(json.dumps(str(backup)) + "\n")


def _is_filled(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _read_notes(directory: Path) -> list[Path]:
    try:
        lines = (directory / NOTES).read_text(encoding="utf-8").splitlines()
        return [Path(json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError):
        return []


def _siblings(directory: Path) -> list[Path]:
    """Lists the files next to a data directory, and records that a restore moved aside."""
    with suppress(OSError):
        names = directory.parent.glob(f"{directory.name}-until-*/toolcrib.db")
        return [*names, *(each for each in directory.parent.iterdir() if each.is_file())]
    return []


def _count(path: Path) -> int:
    """Counts the contexts in a backup."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE_MAGIC)) != _SQLITE_MAGIC:
            raise ValueError(path)
    with closing(connect_readonly(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM contexts").fetchone()[0])


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Connects to an SQLite file without creating files next to it.

    Without a filled write-ahead log the file is opened as `immutable`; otherwise SQLite would try
    to create the log and its index, and fail. With a log, the index that its writer left is used
    (https://sqlite.org/wal.html#read_only_databases). Raises sqlite3.Error if it has a log without
    an index.
    """
    log = path.with_name(f"{path.name}-wal")
    alone = not (log.exists() and log.stat().st_size)
    uri = f"{path.resolve(strict=True).as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)


def problem_of(error: OSError | sqlite3.Error, path: Path) -> str:
    """Describes an error of which SQLite does not say the cause, such as a full disk."""
    if "I/O error" in str(error) and shutil.disk_usage(path.parent).free < LEAST_BYTES:
        return os.strerror(errno.ENOSPC)
    if "unable to open" in str(error):
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as reason:
            if reason.errno in {errno.EMFILE, errno.ENFILE}:
                return str(reason.strerror)
    return (isinstance(error, OSError) and error.strerror) or str(error)


_ADVICE = (
    ("full|no space", "Free some disk space and try again; nothing was changed."),
    (
        "read-?only|denied|unable to open",
        "Give yourself write permission on the data directory, or choose another one.",
    ),
    (
        "too many open files",
        "Try again in a moment. If it stays so, raise the limit of open files (ulimit -n).",
    ),
    ("locked|busy", "Another process is writing; try again in a moment."),
    (
        "is a directory|not a directory|file exists",
        "Move away the file or directory at that path, or choose another data directory.",
    ),
    ("malformed|not a database", DAMAGED),
    ("", "Check the disk and the data directory's permissions."),
)


def advice_on(problem: str, record: Path) -> list[str]:
    """Returns what to do about a problem of a record."""
    advice = next(advice for words, advice in _ADVICE if re.search(words, problem.casefold()))
    return [advice, *(restorable(record) if advice == DAMAGED else ())]
