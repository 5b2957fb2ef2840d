"""Rows: what one identity sees of the record, and inserts and updates by column name."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.database import Where, exactly, identity_clause
from storage.models import Identity


@dataclass(frozen=True, slots=True)
class View:
    """The record as one identity sees it, during one transaction."""

    connection: sqlite3.Connection
    identity: Identity

    @property
    def user_id(self) -> str:
        """The user."""
        return self.identity.user_id

    @property
    def owner(self) -> dict[str, object]:
        """The columns of the identity, for a new row."""
        own = self.identity  # `asdict` would take five times as long
        return {"user_id": own.user_id, "device_id": own.device_id, "agent_id": own.agent_id}

    def seen(self, alias: str) -> Where:
        """Returns the condition for rows that the identity sees."""
        return identity_clause(self.identity, alias)

    def own(self, alias: str) -> Where:
        """Returns the condition for rows stored under exactly this identity."""
        return exactly(self.identity, alias)

    def rows(self, query: str, values: Sequence[object]) -> list[sqlite3.Row]:
        """Returns the rows of a query."""
        return self.connection.execute(query, values).fetchall()

    def row(self, query: str, values: Sequence[object]) -> sqlite3.Row | None:
        """Returns the first row of a query; None if there is none."""
        row: sqlite3.Row | None = self.connection.execute(query, values).fetchone()
        return row


def identity_of(row: sqlite3.Row) -> Identity:
    """Returns the owner of a row."""
    return Identity(row["user_id"], row["device_id"], row["agent_id"])


def insert_row(
    connection: sqlite3.Connection, table: str, row: Mapping[str, object], *, replace: bool = False
) -> int:
    """Inserts a row and returns its seq; a `seq` of None means the next one."""
    cursor = connection.execute(
        f"INSERT {'OR REPLACE ' if replace else ''}INTO {table} ({', '.join(row)})"
        f" VALUES ({', '.join('?' * len(row))})",
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
