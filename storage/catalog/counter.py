"""Counters: how often something was changed, by any process."""

from __future__ import annotations

import sqlite3

from storage.database import Database


class Counter:
    """A number that only grows: whoever finds another than before has something old.

    Args:
        database: The record.
        key: Where it is kept.
    """

    def __init__(self, database: Database, key: str) -> None:
        self._database = database
        self._key = key

    def value(self) -> int:
        """How often it was raised."""
        return int(self._database.get_meta(self._key) or 0)

    def count_up(self, connection: sqlite3.Connection) -> None:
        """Raises it by one, in the transaction that makes the change."""
        connection.execute(
            "INSERT INTO meta (key, value) VALUES (?, '1') ON CONFLICT (key)"
            " DO UPDATE SET value = CAST(value AS INTEGER) + 1",
            (self._key,),
        )
