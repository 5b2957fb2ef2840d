"""Erasure: what was deleted leaves the disk.

A deletion overwrites what it deletes (`secure_delete`), and the log is emptied soon after. What
remains are copies: where SQLite moved a row to another page before, the old place still shows it,
and no pragma overwrites that. Only writing the whole file anew is sure to leave them out. That
keeps writers waiting, over a second for 100 MB, so it happens when nothing else is to be done, once
an hour at most, and not by itself where the file is large.
"""

from __future__ import annotations

import time

from storage.database import Database

ERASE_SECONDS = 3600
"""How long after the last time the file may be written anew."""

LARGEST_BYTES = 300_000_000
"""File size up to which that happens by itself: half of the time that a writer waits."""

_DELETIONS = "deletions"
_ERASED = "erased_deletions"
_TIME = "erase_time"


def is_due(database: Database) -> bool:
    """Whether something was deleted, and the file may be written anew again."""
    if (database.get_meta(_DELETIONS) or "0") == (database.get_meta(_ERASED) or "0"):
        return False
    waited = abs(time.time() - float(database.get_meta(_TIME) or 0))  # clocks are set back
    return waited > ERASE_SECONDS and database.path.stat().st_size <= LARGEST_BYTES


def erase(database: Database) -> bool:
    """Writes the file anew, and empties the log.

    Returns:
        Whether nobody stood in the way: while another reads, the log stays.
    """
    counted = database.get_meta(_DELETIONS)  # what is deleted meanwhile is for the next time
    database.compact()
    with database.write() as connection:
        connection.executemany(
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
            ((_ERASED, counted or "0"), (_TIME, str(time.time()))),
        )
    return database.fold_log()
