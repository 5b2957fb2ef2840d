"""Delegations: work handed to other agents, and the limits that one root's delegations share.

Each has a token, of which only the digest is stored. Any process on the same data accepts the
token, and it grants no more than its row says.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256

from storage.database import Database, identity_of, insert_row
from storage.errors import CeilingReachedError
from storage.models import Identity

KEPT = 30 * 86_400.0  # seconds for which a delegation is kept after its root ends
SHORTEST = 1.0  # a delegation with fewer seconds left than this is not started

_ALONE = "Do the rest yourself, without another agent."

ToolPatterns = tuple[str, tuple[str, ...], tuple[str, ...]]
"""The name of a tool set, the tools it allows, and those it denies."""

_ELSEWHERE = {"identity", "tools"}  # fields of a delegation that are not columns of the same form


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Limits on all delegations of one root together."""

    depth: int = 2
    count: int = 20
    seconds: float = 3_600.0  # total seconds of all delegations, parallel ones included
    cost: float = 10.0  # US dollars, where agents report their cost; 0 sets no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelegation:
    """A request for a delegation."""

    agent: str
    identity: Identity
    session_id: str
    tools: tuple[ToolPatterns, ...]  # sets that a call must be within, each
    seconds: float  # maximum seconds it may take
    cost: float = 0.0  # the most US dollars it may cost; 0 if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Work handed to an agent."""

    id: str
    root: str  # the first delegation of the chain
    parent: str  # the delegation whose agent asked for it; empty for a root
    depth: int  # 1 for a root
    agent: str
    identity: Identity
    parent_session: str
    session_id: str
    tools: tuple[ToolPatterns, ...]  # tool sets that limit those calls; a call must be within each
    began: float  # Unix seconds
    ends: float  # Unix seconds after which the agent's token is invalid
    seconds: float | None  # how long it took; None while it runs
    reserved_cost: float  # US dollars reserved for it; 0 if its cost is unknown
    cost: float
    outcome: str  # how it ended; empty while it runs

    @property
    def is_open(self) -> bool:
        """Whether its agent may still make calls."""
        return self.seconds is None and time.time() < self.ends

    @property
    def spent(self) -> float:
        """US dollars that it cost, or that are reserved for it."""
        return self.reserved_cost if self.seconds is None else self.cost

    @property
    def reserved_seconds(self) -> float:
        """Seconds that it took, or that are reserved for it."""
        return self.ends - self.began if self.seconds is None else self.seconds


class Delegations:
    """Stores delegations and enforces their limits across processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, new: NewDelegation, ceilings: Ceilings) -> tuple[Delegation, str]:
        """Starts a delegation within the ceilings, and returns it with its token."""
        token = secrets.token_urlsafe(32)
        with self._database.write() as connection:
            connection.execute("DELETE FROM delegations WHERE ends < ?", (time.time() - KEPT,))
            made = _new_delegation(connection, new, ceilings)
            names = [name for name in Delegation.__slots__ if name not in _ELSEWHERE]
            row = {name: getattr(made, name) for name in names} | asdict(made.identity)
            row |= {"tools": json.dumps(made.tools), "digest": _digest(token)}
            insert_row(connection, "delegations", row)
        return made, token

    def finish(self, delegation_id: str, *, cost: float, outcome: str) -> Delegation:
        """Ends a delegation and invalidates its token."""
        with self._database.write() as connection:
            row = connection.execute(
                "UPDATE delegations SET seconds = ? - began, cost = ?, outcome = ?"
                " WHERE id = ? RETURNING *",
                (time.time(), cost, outcome, delegation_id),
            ).fetchone()
        return _read(row)

    def of_token(self, token: str) -> Delegation | None:
        """Returns the open delegation of a token; None if there is none."""
        found = self._find("digest = ?", _digest(token))
        return found if found is not None and found.is_open else None

    def of_session(self, session_id: str) -> Delegation | None:
        """Returns the delegation whose agent has this session, even if it has ended."""
        return self._find("session_id = ?", session_id)

    def find(self, delegation_id: str) -> Delegation | None:
        """Returns a delegation by its id, even if it has ended."""
        return self._find("id = ?", delegation_id)

    def unfinished(self) -> list[Delegation]:
        """Returns those that still run or whose process died."""
        rows = self._database.rows("SELECT * FROM delegations WHERE seconds IS NULL")
        return list(map(_read, rows))

    def of_root(self, root: str) -> list[Delegation]:
        """Returns all delegations of a root, oldest first."""
        with self._database.read() as connection:
            return _of_root(connection, root)

    def _find(self, condition: str, value: object) -> Delegation | None:
        rows = self._database.rows(f"SELECT * FROM delegations WHERE {condition}", (value,))
        return _read(rows[0]) if rows else None


def _new_delegation(
    connection: sqlite3.Connection, new: NewDelegation, ceilings: Ceilings
) -> Delegation:
    """Builds a delegation within the limits of its root and before its parent ends."""
    now, own = time.time(), uuid.uuid4().hex
    row = connection.execute(
        "SELECT * FROM delegations WHERE session_id = ?", (new.session_id,)
    ).fetchone()
    parent = None if row is None else _read(row)
    if parent is not None and not parent.is_open:
        raise CeilingReachedError("The delegation that this conversation belongs to has ended.")
    before = [] if parent is None else _of_root(connection, parent.root)
    depth = 1 if parent is None else parent.depth + 1
    if depth > ceilings.depth:
        raise CeilingReachedError(
            f"This delegation would be nested {depth} deep; {ceilings.depth} are allowed"
            " (delegation.depth).",
            suggestions=(_ALONE,),
        )
    if len(before) >= ceilings.count:
        raise CeilingReachedError(
            f"This chain already has {len(before)} delegations; {ceilings.count} are allowed"
            " (delegation.count).",
            suggestions=(_ALONE,),
        )
    seconds = min(
        new.seconds,
        ceilings.seconds - sum(each.reserved_seconds for each in before),
        new.seconds if parent is None else parent.ends - now,
    )
    if seconds < SHORTEST:
        raise CeilingReachedError(
            f"The {ceilings.seconds:g} seconds that delegations may take in total"
            " (delegation.seconds), or those of the calling delegation, are used up.",
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


def _cost(new: NewDelegation, before: Sequence[Delegation], ceilings: Ceilings) -> float:
    """Returns what to reserve for it from the root's budget; 0 if its cost is unknown."""
    if not ceilings.cost:
        return new.cost
    left = ceilings.cost - sum(each.spent for each in before)
    if left <= 0:
        raise CeilingReachedError(
            f"The {ceilings.cost:g} dollars that delegations may cost in total (delegation.cost)"
            " are spent or reserved for running delegations.",
            suggestions=(_ALONE,),
        )
    return min(new.cost, left)


def _of_root(connection: sqlite3.Connection, root: str) -> list[Delegation]:
    found = "SELECT * FROM delegations WHERE root = ? ORDER BY began, id"
    return list(map(_read, connection.execute(found, (root,))))


def _read(row: sqlite3.Row) -> Delegation:
    tools = json.loads(row["tools"])
    return Delegation(
        **{name: row[name] for name in Delegation.__slots__ if name not in _ELSEWHERE},
        identity=identity_of(row),
        tools=tuple((name, tuple(allow), tuple(deny)) for name, allow, deny in tools),
    )


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogateescape")).digest()
