"""Delegations: work that was given to other agents, and the ceilings that hold for it together.

Each has a token, of which only the digest is kept. Whoever has the token is what its row says, in
any process on the same data: there is none that stands for more.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from storage.database import Database
from storage.errors import CeilingReachedError
from storage.models import Identity

KEPT = 30 * 86_400.0
"""Seconds that a delegation is kept after its root's end."""

SHORTEST = 1.0
"""Seconds without which none is begun."""

_ALONE = "Do the rest yourself, without another agent."

ToolPatterns = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The name of a tool set, what it allows, and what it denies."""

_COLUMNS = (
    "id, root, parent, depth, agent, user_id, device_id, agent_id, parent_session, session_id,"
    " tools, began, ends, seconds, reserved_cost, cost, outcome"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """What the delegations of one root may come to together.

    Attributes:
        depth: Agents that may stand one behind the other.
        count: Delegations.
        seconds: Seconds that all of them take, side by side or not.
        cost: US dollars, where the agents tell them; 0 sets no limit.
    """

    depth: int = 2
    count: int = 20
    seconds: float = 3_600.0
    cost: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelegation:
    """What is asked for.

    Attributes:
        agent: To which agent.
        identity: Whose call it is; the agent's own are the same's.
        session_id: In which conversation it was asked for.
        tools: The tool sets that the agent's calls are within, each of them.
        seconds: How long it may take.
        cost: US dollars that it may cost; 0 says nothing.
    """

    agent: str
    identity: Identity
    session_id: str
    tools: tuple[ToolPatterns, ...]
    seconds: float
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Work that was given to an agent.

    Attributes:
        id: Its name.
        root: The first of those that led to it.
        parent: The one whose agent asked for it; empty if none did.
        depth: 1 of the root.
        agent: To which agent.
        identity: Whose.
        parent_session: In which conversation it was asked for.
        session_id: The conversation of the agent's own calls.
        tools: The tool sets that those are within, each of them.
        began: Unix seconds.
        ends: Unix seconds after which the agent's token counts for nothing.
        seconds: How long it took; None while it runs.
        reserved_cost: US dollars that are set aside for it; 0 where nobody says what it may cost.
        cost: US dollars, as the agent told.
        outcome: How it ended; empty while it runs.
    """

    id: str
    root: str
    parent: str
    depth: int
    agent: str
    identity: Identity
    parent_session: str
    session_id: str
    tools: tuple[ToolPatterns, ...]
    began: float
    ends: float
    seconds: float | None
    reserved_cost: float
    cost: float
    outcome: str

    @property
    def is_open(self) -> bool:
        """Whether its agent may still call anything."""
        return self.seconds is None and time.time() < self.ends

    @property
    def spent(self) -> float:
        """US dollars that it cost, or that are set aside for it."""
        return self.reserved_cost if self.seconds is None else self.cost

    @property
    def reserved_seconds(self) -> float:
        """How long it took, or may take."""
        return self.ends - self.began if self.seconds is None else self.seconds


class Delegations:
    """Keeps delegations and holds them to their ceilings, whichever process begins one.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, new: NewDelegation, ceilings: Ceilings) -> tuple[Delegation, str]:
        """Begins one, with its token; what it may take at most is its root's from now on.

        Raises:
            CeilingReachedError: If a ceiling is reached, or its caller's own delegation has ended.
        """
        token = secrets.token_urlsafe(32)
        with self._database.write() as connection:
            _remove_old(connection)
            begun = _begun(connection, new, ceilings)
            connection.execute(
                f"INSERT INTO delegations (digest, {_COLUMNS}) VALUES ({', '.join('?' * 18)})",
                (_digest(token), *_values(begun)),
            )
        return begun, token

    def finish(self, delegation_id: str, *, cost: float, outcome: str) -> Delegation:
        """Ends one: its token counts for nothing from now on."""
        with self._database.write() as connection:
            row = connection.execute(
                "UPDATE delegations SET seconds = ? - began, cost = ?, outcome = ?"
                f" WHERE id = ? RETURNING {_COLUMNS}",
                (time.time(), cost, outcome, delegation_id),
            ).fetchone()
        return _read(row)

    def of_token(self, token: str) -> Delegation | None:
        """What a token stands for; None if for nothing, or for nothing any more."""
        found = self._find("digest = ?", _digest(token))
        return found if found is not None and found.is_open else None

    def of_session(self, session_id: str) -> Delegation | None:
        """The one whose agent has this conversation, even if it has ended; None if none does."""
        return self._find("session_id = ?", session_id)

    def find(self, delegation_id: str) -> Delegation | None:
        """The one of that name, even if it has ended; None if there is none."""
        return self._find("id = ?", delegation_id)

    def unfinished(self) -> list[Delegation]:
        """Those that run, or whose process died."""
        with self._database.read() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM delegations WHERE seconds IS NULL")
            return [_read(row) for row in rows]

    def of_root(self, root: str) -> list[Delegation]:
        """All that one led to, in their order."""
        with self._database.read() as connection:
            return _of_root(connection, root)

    def _find(self, condition: str, value: object) -> Delegation | None:
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM delegations WHERE {condition}", (value,)
            ).fetchone()
        return None if row is None else _read(row)


def _begun(connection: sqlite3.Connection, new: NewDelegation, ceilings: Ceilings) -> Delegation:
    """What a new one would be, held to the ceilings of its root and to its parent's end."""
    now, own = time.time(), uuid.uuid4().hex
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM delegations WHERE session_id = ?", (new.session_id,)
    ).fetchone()
    parent = None if row is None else _read(row)
    if parent is not None and not parent.is_open:
        raise CeilingReachedError("The delegation that this conversation belongs to has ended.")
    before = [] if parent is None else _of_root(connection, parent.root)
    depth = 1 if parent is None else parent.depth + 1
    if depth > ceilings.depth:
        raise CeilingReachedError(
            f"It would be delegation {depth} deep, {ceilings.depth} are allowed"
            " (delegation.depth).",
            suggestions=(_ALONE,),
        )
    if len(before) >= ceilings.count:
        raise CeilingReachedError(
            f"{len(before)} delegations led to one another already, {ceilings.count} are allowed"
            " (delegation.count).",
            suggestions=(_ALONE,),
        )
    seconds = min(
        new.seconds,
        _seconds_left(before, ceilings),
        new.seconds if parent is None else parent.ends - now,
    )
    if seconds < SHORTEST:
        raise CeilingReachedError(
            f"The {ceilings.seconds:g} seconds that delegations may take together"
            " (delegation.seconds), or those of the one that asks, are used up.",
            suggestions=(_ALONE,),
        )
    return Delegation(
        id=own,
        root=own if parent is None else parent.root,
        parent="" if parent is None else parent.id,
        depth=depth,
        agent=new.agent,
        identity=new.identity,
        parent_session=new.session_id,
        session_id=uuid.uuid4().hex,
        tools=new.tools,
        began=now,
        ends=now + seconds,
        seconds=None,
        reserved_cost=_cost(new, before, ceilings),
        cost=0.0,
        outcome="",
    )


def _seconds_left(before: Sequence[Delegation], ceilings: Ceilings) -> float:
    """What a root has left beside what it took and what is set aside for those that run."""
    return ceilings.seconds - sum(each.reserved_seconds for each in before)


def _cost(new: NewDelegation, before: Sequence[Delegation], ceilings: Ceilings) -> float:
    """What is set aside for it of what its root has left; 0 where nobody says what it may cost."""
    if not ceilings.cost:
        return new.cost
    left = ceilings.cost - sum(each.spent for each in before)
    if left <= 0:
        raise CeilingReachedError(
            f"The {ceilings.cost:g} dollars that delegations may cost together (delegation.cost)"
            " are spent, or set aside for those that run.",
            suggestions=(_ALONE,),
        )
    return min(new.cost, left)


def _of_root(connection: sqlite3.Connection, root: str) -> list[Delegation]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM delegations WHERE root = ? ORDER BY began, id", (root,)
    )
    return [_read(row) for row in rows]


def _remove_old(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM delegations WHERE ends < ?", (time.time() - KEPT,))


def _values(each: Delegation) -> tuple[object, ...]:
    whose = each.identity
    return (
        *(each.id, each.root, each.parent, each.depth, each.agent),
        *(whose.user_id, whose.device_id, whose.agent_id, each.parent_session, each.session_id),
        *(json.dumps(each.tools), each.began, each.ends, each.seconds),
        *(each.reserved_cost, each.cost, each.outcome),
    )


def _read(row: tuple[object, ...]) -> Delegation:
    names = [name.strip() for name in _COLUMNS.split(",")]
    found = dict(zip(names, row, strict=True))
    whose = Identity(*(str(found.pop(key)) for key in ("user_id", "device_id", "agent_id")))
    tools = tuple(
        (name, tuple(allow), tuple(deny)) for name, allow, deny in json.loads(str(found["tools"]))
    )
    return Delegation(**{**found, "identity": whose, "tools": tools})  # type: ignore[arg-type]  # columns as the schema has them


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogateescape")).digest()
