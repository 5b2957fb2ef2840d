"""Counters of changes made by any process."""

from __future__ import annotations

import sqlite3

from storage.database import Database


class Counter:
    """A number that only grows; a changed value means that cached data is stale."""

    def __init__(self, database: Database, key: str) -> None:
        self._database = database
        self._key = key

    def value(self) -> int:
        """Returns the current count."""
        return int(self._database.get_meta(self._key) or 0)

    def count_up(self, connection: sqlite3.Connection) -> None:
        """Increments the count in the transaction that makes the change."""
        connection.execute(
            "INSERT INTO meta (key, value) VALUES (?, '1') ON CONFLICT (key)"
            " DO UPDATE SET value = CAST(value AS INTEGER) + 1",
            (self._key,),
        )
