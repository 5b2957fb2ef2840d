"""Uses: which tool was called successfully after which query."""

from __future__ import annotations

import time
from dataclasses import dataclass

from storage.database import Database, exactly, identity_clause
from storage.models import Identity

MOST_KEPT = 500  # maximum uses stored per identity; the oldest are deleted first


@dataclass(frozen=True, slots=True)
class Use:
    """A tool that answered a query."""

    query: str
    tool_id: str
    count: int  # how often it did


class Uses:
    """Stores the uses of each identity separately."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, identity: Identity, query: str, tool_id: str) -> None:
        """Stores one use and deletes the oldest beyond the limit."""
        own = exactly(identity, "u")
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO tool_uses VALUES (?, ?, ?, ?, ?, 1, ?) ON CONFLICT"
                " DO UPDATE SET count = count + 1, last_used = excluded.last_used",
                (*own.values, query, tool_id, time.time()),
            )
            connection.execute(
                f"DELETE FROM tool_uses AS u WHERE {own.sql} AND (query, tool_id) IN"
                f" (SELECT query, tool_id FROM tool_uses u WHERE {own.sql}"
                " ORDER BY last_used DESC, query, tool_id LIMIT -1 OFFSET ?)",
                (*own.values, *own.values, MOST_KEPT),
            )

    def listed(self, identity: Identity) -> list[Use]:
        """Returns the uses of an identity, latest last; an empty device or agent matches any."""
        owner = identity_clause(identity, "u")
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT query, tool_id, sum(count) AS count FROM tool_uses u"
                f" WHERE {owner.sql} GROUP BY query, tool_id"
                " ORDER BY max(last_used), query, tool_id",
                owner.values,
            ).fetchall()
        return [Use(*row) for row in rows]

    def forget(self, identity: Identity) -> int:
        """Deletes the uses of an identity and returns how many."""
        owner = identity_clause(identity, "u")
        with self._database.write() as connection:
            return connection.execute(
                f"DELETE FROM tool_uses AS u WHERE {owner.sql}", owner.values
            ).rowcount
