"""To-do lists, one per session."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Literal

from storage.database import Database, Where, exactly, insert_row
from storage.models import Identity

TodoStatus = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, slots=True)
class Todo:
    """An item of a to-do list."""

    id: str  # identifies it within its list; empty until it is stored
    content: str
    status: TodoStatus = "pending"
    active_form: str = ""  # the wording while it is in progress; empty to use `content`


class Todos:
    """Reads and changes the to-do lists of one identity only."""

    def __init__(self, identity: Identity, database: Database) -> None:
        self._identity = identity
        self._database = database

    def listed(self, session_id: str) -> list[Todo]:
        """Returns the list of a session in its order; empty if it has none."""
        with self._database.read() as connection:
            return _read(connection, self._whose(session_id))

    def replace(self, session_id: str, todos: Sequence[Todo]) -> list[Todo]:
        """Replaces the list of a session in one transaction.

        An item without an id keeps the id of the earlier item with the same content. Otherwise it
        gets the next number that neither list uses, so the same list twice is the same list. Given
        ids must differ. Returns the list with all ids.
        """
        owner = self._whose(session_id)
        with self._database.write() as connection:
            stored = list(_assign_ids(todos, _read(connection, owner)))
            connection.execute(f"DELETE FROM todos AS t WHERE {owner.sql}", owner.values)
            key = asdict(self._identity) | {"session_id": session_id}
            for position, todo in enumerate(stored):
                insert_row(connection, "todos", key | {"position": position} | asdict(todo))
        return stored

    def _whose(self, session_id: str) -> Where:
        own = exactly(self._identity, "t")
        return Where(f"{own.sql} AND t.session_id = ?", (*own.values, session_id))


def _read(connection: sqlite3.Connection, owner: Where) -> list[Todo]:
    rows = connection.execute(
        f"SELECT t.id, t.content, t.status, t.active_form FROM todos t WHERE {owner.sql}"
        " ORDER BY t.position",
        owner.values,
    )
    return [Todo(*row) for row in rows]


def _assign_ids(todos: Sequence[Todo], earlier: Sequence[Todo]) -> Iterator[Todo]:
    given = {todo.id for todo in todos if todo.id}
    known = given | {todo.id for todo in earlier}
    fresh = (str(number) for number in count(1) if str(number) not in known)
    free: dict[str, list[str]] = {}
    for todo in earlier:
        if todo.id not in given:
            free.setdefault(todo.content, []).append(todo.id)
    for todo in todos:
        if todo.id:
            yield todo
        else:
            same = free.get(todo.content)
            yield replace(todo, id=same.pop(0) if same else next(fresh))
