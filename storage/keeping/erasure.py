"""Erasure: removes deleted data from the disk.

A deletion overwrites its data (`secure_delete`), and the log is emptied soon after. Copies remain:
if SQLite moved a row to another page before, the old page still has it, and no pragma overwrites
that. Only rewriting the whole file removes the copies. That blocks writers, over a second for 100
MB, so it runs while there is nothing else to do, at most once an hour, and not automatically for
large files.
"""

from __future__ import annotations

import time

from storage.database import Database

ERASE_SECONDS = 3600  # minimum seconds between two rewrites of the file

LARGEST_BYTES = 300_000_000
"""The largest file that is rewritten automatically, in about half of a writer's timeout."""

_DELETIONS = "deletions"
_ERASED = "erased_deletions"
_TIME = "erase_time"


def is_due(database: Database) -> bool:
    """Returns whether data was deleted and the file may be rewritten again."""
    if (database.get_meta(_DELETIONS) or "0") == (database.get_meta(_ERASED) or "0"):
        return False
    waited = abs(time.time() - float(database.get_meta(_TIME) or 0))  # abs: clocks may be set back
    return waited > ERASE_SECONDS and database.path.stat().st_size <= LARGEST_BYTES


def erase(database: Database) -> bool:
    """Rewrites the file; returns whether the log was emptied, which a reader prevents."""
    counted = database.get_meta(_DELETIONS)  # later deletions wait for the next rewrite
    database.compact()
    with database.write() as connection:
        connection.executemany(
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
            ((_ERASED, counted or "0"), (_TIME, str(time.time()))),
        )
    return database.fold_log()
