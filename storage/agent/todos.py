"""To-do lists: what an agent means to do, one list a session."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

from storage.database import Database, Where, exactly
from storage.models import Identity

TodoStatus = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, slots=True)
class Todo:
    """One thing to do.

    Attributes:
        id: What tells it from the others of its list; empty until it is stored.
        content: What is to be done.
        status: How far it is.
        active_form: How it is said while it is done; empty where it is said as ever.
    """

    id: str
    content: str
    status: TodoStatus = "pending"
    active_form: str = ""


class Todos:
    """The lists of one identity; nobody else's are read or changed.

    Args:
        identity: Whose; a list is found again under this very identity only.
        database: The record.
    """

    def __init__(self, identity: Identity, database: Database) -> None:
        self._identity = identity
        self._database = database

    def listed(self, session_id: str) -> list[Todo]:
        """The list of a session in its order; empty where there is none."""
        with self._database.read() as connection:
            return _read(connection, self._whose(session_id))

    def replace(self, session_id: str, todos: Sequence[Todo]) -> list[Todo]:
        """Puts a list in the place of the session's earlier one, all of it or nothing.

        A to-do without an id keeps that of the earlier one with the same content, else gets the
        next number that neither list has: the same list twice is the same list.

        Args:
            session_id: Which session.
            todos: The list; ids that are given must differ.

        Returns:
            The list with all ids.
        """
        owner = self._whose(session_id)
        with self._database.write() as connection:
            stored = list(_identified(todos, _read(connection, owner)))
            connection.execute(f"DELETE FROM todos AS t WHERE {owner.sql}", owner.values)
            connection.executemany(
                "INSERT INTO todos (user_id, device_id, agent_id, session_id, position, id,"
                " content, status, active_form) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (*owner.values, position, todo.id, todo.content, todo.status, todo.active_form)
                    for position, todo in enumerate(stored)
                ),
            )
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


def _identified(todos: Sequence[Todo], earlier: Sequence[Todo]) -> Iterator[Todo]:
    """The to-dos, each with an id of its own."""
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
