"""Writes many rows in short transactions, and counts the changes of all processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from storage.database import Database

AT_ONCE = 2_000  # rows per transaction, or keys per statement; other writers wait some 20 to 50 ms
Value = TypeVar("Value")


def batches(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Returns the values in slices of `AT_ONCE`."""
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))


def write_many(database: Database, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Executes a statement for each row, in short transactions that other writers can wait for."""
    for some in batches(rows):
        with database.write() as connection:
            connection.executemany(sql, some)


class Counter:
    """A number that only grows; a changed value means that cached data is stale."""

    def __init__(self, database: Database, key: str) -> None:
        self._database = database
        self._key = key

    def __call__(self) -> int:
        """Returns the current count."""
        return int(self._database.get_meta(self._key) or 0)

    def count_up(self, connection: sqlite3.Connection) -> None:
        """Increments the count in the transaction that makes the change."""
        connection.execute(
            "INSERT INTO meta (key, value) VALUES (?, '1') ON CONFLICT (key)"
            " DO UPDATE SET value = CAST(value AS INTEGER) + 1",
            (self._key,),
        )
