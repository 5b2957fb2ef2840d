"""Analyses: what was made of a tool's texts, kept so that it need not be made again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from storage.catalog.portions import in_portions
from storage.database import Database
from storage.errors import StorageUnavailableError

KEPT_DAYS = 60
"""Days after which an analysis that nobody needed is dropped."""

MARKED_DAYS = 7
"""Days after which it is noted again that an analysis was needed: a read rarely writes."""

DAY = 86_400


class Analyses:
    """Values by the hash of what they were made from; whatever is missing can be made again.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tidied = 0  # the day; changed in this process's turn to write

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What is kept under these keys; 45,000 of them take 0.2 s.

        Raises:
            StorageUnavailableError: If the record cannot be read.
        """
        found: dict[bytes, bytes] = {}
        stale: list[bytes] = []
        before = _today() - MARKED_DAYS
        with self._database.read() as connection:
            for some in in_portions(keys):
                rows = connection.execute(
                    "SELECT key, value, used FROM tool_analyses"
                    f" WHERE key IN ({', '.join('?' * len(some))})",
                    some,
                )
                for key, value, used in rows:
                    found[key] = value
                    if used <= before:
                        stale.append(key)
        with suppress(StorageUnavailableError):  # what can be read is of use on a full disk too
            self._mark(stale)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keeps values, all or none, in the place of those that have their keys.

        Once a day it also drops what nobody needed for `KEPT_DAYS`.

        Raises:
            StorageUnavailableError: If the record cannot be written.
        """
        today = _today()
        with self._database.write() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO tool_analyses (key, value, used) VALUES (?, ?, ?)",
                ((key, value, today) for key, value in values.items()),
            )
            if self._tidied != today:
                connection.execute("DELETE FROM tool_analyses WHERE used < ?", (today - KEPT_DAYS,))
                self._tidied = today

    def _mark(self, keys: Sequence[bytes]) -> None:
        today = _today()
        for some in in_portions(keys):
            with self._database.write() as connection:
                connection.executemany(
                    "UPDATE tool_analyses SET used = ? WHERE key = ?",
                    ((today, key) for key in some),
                )


def _today() -> int:
    return int(time.time() // DAY)
