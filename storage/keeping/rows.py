"""Rows of the record, by the names of their columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Literal

Outcome = Literal["added", "replaced", "unchanged"]
"""What became of a record that result."""


def insert_row(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> int:
    """Adds a row, and answers with its seq.

    Args:
        connection: The record.
        table: The table.
        row: The values by their columns; a `seq` of None is the next one.
    """
    cursor = connection.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )
    return int(cursor.lastrowid or 0)


def update_row(
    connection: sqlite3.Connection, table: str, row: Mapping[str, object], key: Mapping[str, object]
) -> None:
    """Gives the row with a key other values."""
    given = ", ".join(f"{column} = ?" for column in row)
    found = " AND ".join(f"{column} = ?" for column in key)
    connection.execute(f"UPDATE {table} SET {given} WHERE {found}", (*row.values(), *key.values()))
