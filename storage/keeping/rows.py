"""Inserts and updates rows by column name."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Literal

Outcome = Literal["added", "replaced", "unchanged"]
"""The outcome for one record."""


def insert_row(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> int:
    """Inserts a row and returns its seq.

    A `seq` of None means the next one.
    """
    cursor = connection.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )
    return int(cursor.lastrowid or 0)


def update_row(
    connection: sqlite3.Connection, table: str, row: Mapping[str, object], key: Mapping[str, object]
) -> None:
    """Updates the row with a key."""
    given = ", ".join(f"{column} = ?" for column in row)
    found = " AND ".join(f"{column} = ?" for column in key)
    connection.execute(f"UPDATE {table} SET {given} WHERE {found}", (*row.values(), *key.values()))
