"""Opens a record that cannot be written: on a read-only or full disk, or without permission."""

from __future__ import annotations

import sqlite3
from pathlib import Path


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
