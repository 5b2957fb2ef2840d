"""Converts values to table rows and back."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from storage.keeping.changes.models import Caller, Change, Difference, FileState
from storage.models import Identity

CALLER = "user_id, device_id, agent_id, session_id, tool"

INSERT_CHANGE = (
    f"INSERT INTO changes (call, time, {CALLER}, root, path, before, before_mode, why, after,"
    " after_mode) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def caller_values(caller: Caller, time: float) -> tuple[object, ...]:
    """Returns a call and its time as the leading columns of the tables that have them."""
    own = caller.identity
    return (
        *(caller.call, time, own.user_id, own.device_id, own.agent_id),
        *(caller.session_id, caller.tool),
    )


def caller_of(row: sqlite3.Row) -> Caller:
    """Builds the caller of a row."""
    identity = Identity(row["user_id"], row["device_id"], row["agent_id"])
    return Caller(row["call"], identity, row["session_id"], row["tool"])


def change_values(
    caller: Caller, time: float, root: bytes, difference: Difference
) -> tuple[object, ...]:
    """Returns the values for `INSERT_CHANGE`."""
    path, before, after = difference
    return (
        *caller_values(caller, time),
        *(root, os.fsencode(path)),
        *(before.state, before.mode, before.why, after.state, after.mode),
    )


def change_of(row: sqlite3.Row) -> Change:
    """Builds the change of a row."""
    return Change(
        id=row["change_id"],
        time=row["time"],
        by=caller_of(row),
        path=os.fsdecode(row["path"]),
        before=FileState(row["before"], row["before_mode"], row["why"]),
        after=FileState(row["after"], row["after_mode"]),
    )


def file_of(row: Any) -> tuple[str, FileState]:  # noqa: ANN401  # a row, which unpacks as a tuple
    """Returns the path and the state of a row of `files`."""
    path, *state = row
    return os.fsdecode(path), FileState(*state)
