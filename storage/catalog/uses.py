"""Uses: which tool was called, with success, after which question."""

from __future__ import annotations

import time
from dataclasses import dataclass

from storage.database import Database, exactly, identity_clause
from storage.models import Identity

MOST_KEPT = 500
"""Uses of one identity that are kept; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Use:
    """A tool that served a question.

    Attributes:
        query: The question.
        tool_id: The tool.
        count: How often it did.
    """

    query: str
    tool_id: str
    count: int


class Uses:
    """Remembers for each identity alone what served it.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, identity: Identity, query: str, tool_id: str) -> None:
        """Remembers one use more, and forgets the oldest where there are too many."""
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
        """What served an identity, the latest last; an empty device or agent means any."""
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
        """Forgets all that served an identity, and says how much that was."""
        owner = identity_clause(identity, "u")
        with self._database.write() as connection:
            return connection.execute(
                f"DELETE FROM tool_uses AS u WHERE {owner.sql}", owner.values
            ).rowcount
