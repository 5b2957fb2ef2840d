"""Created tools: tools written by agents, in all their versions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from storage.catalog.transactions import Counter
from storage.database import Database
from storage.errors import StorageError
from storage.models import Identity

MOST_TOOLS = 200  # tools that one user may have

_COLUMNS = (
    "user_id, name, version, device_id, agent_id, session_id, client, source, definition, digest,"
    " created_at"
)
_CURRENT = (
    f"SELECT {_COLUMNS} FROM created_tools AS t WHERE removed_at IS NULL AND version ="
    " (SELECT max(version) FROM created_tools AS o WHERE o.user_id = t.user_id"
    " AND o.name = t.name)"
)


@dataclass(frozen=True, slots=True)
class CreatedTool:
    """A version of a created tool."""

    identity: Identity  # the owner, with the device and agent it was written on
    name: str
    version: int  # its version, counted from 1
    session_id: str  # the session in which it was written
    client: str  # the client that wrote it, as the client calls itself
    source: str  # Python source with one public function
    definition: Mapping[str, Any]  # the definition shown to callers
    digest: str  # the digest of what a user approved
    created_at: float  # Unix seconds

    @property
    def owner(self) -> str:
        """The user who owns it."""
        return self.identity.user_id

    @property
    def is_whole(self) -> bool:
        """Whether it still matches the digest stored with it."""
        return self.digest == _digest(self.name, self.source, _json(self.definition))


class CreatedToolStore:
    """Stores the tools of every user, each visible to that user only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.changes = Counter(database, "created_tools_changes")

    def everybodys(self) -> list[CreatedTool]:
        """Returns the current version of every user's tools, for a server shared by all users."""
        with self._database.read() as connection:
            rows = connection.execute(f"{_CURRENT} ORDER BY user_id, name").fetchall()
        return [*map(_tool, rows)]

    def get(self, user_id: str, name: str) -> CreatedTool | None:
        """Returns the current version of a user's tool; None if it does not exist."""
        with self._database.read() as connection:
            return _current(connection, user_id, name)

    def versions(self, user_id: str, name: str) -> list[CreatedTool]:
        """Returns every version of a user's tool, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM created_tools WHERE user_id = ? AND name = ?"
                " ORDER BY version",
                (user_id, name),
            ).fetchall()
        return [*map(_tool, rows)]

    def add(  # noqa: PLR0913  # the columns of a tool
        self,
        identity: Identity,
        name: str,
        source: str,
        definition: Mapping[str, Any],
        *,
        session_id: str,
        client: str,
    ) -> CreatedTool:
        """Stores a tool, as the next version if its name was used before."""
        definition_json = _json(definition)
        with self._database.write() as connection:
            (others,) = connection.execute(
                f"SELECT count(*) FROM ({_CURRENT} AND t.user_id = ? AND t.name <> ?)",
                (identity.user_id, name),
            ).fetchone()
            if others >= MOST_TOOLS:
                raise StorageError(
                    f"There are {others} created tools; at most {MOST_TOOLS} are stored.",
                    suggestions=("Remove tools you no longer need with remove_tool.",),
                )
            (last,) = connection.execute(
                "SELECT coalesce(max(version), 0) FROM created_tools"
                " WHERE user_id = ? AND name = ?",
                (identity.user_id, name),
            ).fetchone()
            row = (
                *(identity.user_id, name, last + 1, identity.device_id, identity.agent_id),
                *(session_id, client, source, definition_json),
                *(_digest(name, source, definition_json), time.time()),
            )
            connection.execute(
                f"INSERT INTO created_tools ({_COLUMNS}) VALUES ({', '.join('?' * len(row))})", row
            )
            self.changes.count_up(connection)
        return _tool(row)

    def remove(self, user_id: str, name: str) -> CreatedTool | None:
        """Removes a user's tool and returns its last version; None if it does not exist."""
        with self._database.write() as connection:
            found = _current(connection, user_id, name)
            if found is not None:
                connection.execute(
                    "UPDATE created_tools SET removed_at = ?"
                    " WHERE user_id = ? AND name = ? AND version = ?",
                    (time.time(), user_id, name, found.version),
                )
                self.changes.count_up(connection)
        return found


def _current(connection: sqlite3.Connection, user_id: str, name: str) -> CreatedTool | None:
    row = connection.execute(
        f"{_CURRENT} AND t.user_id = ? AND t.name = ?", (user_id, name)
    ).fetchone()
    return None if row is None else _tool(row)


def _tool(row: Sequence[Any]) -> CreatedTool:
    user_id, name, version, device_id, agent_id, session_id, client, source, said, *rest = row
    identity = Identity(user_id, device_id, agent_id)
    try:
        definition = json.loads(said)
    except ValueError:  # damaged: is_whole is false then, and other tools still load
        definition = {}
    return CreatedTool(identity, name, version, session_id, client, source, definition, *rest)


def _json(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition)  # the order of parameters matters


def _digest(name: str, source: str, definition: str) -> str:
    return sha256(json.dumps([name, source, definition]).encode()).hexdigest()
