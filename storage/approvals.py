"""Approvals: questions to a user about calls, and grants that last for a while."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from storage.database import Database, Where, exactly, identity_of, insert_row
from storage.models import Identity

WATCHED = 3.0  # seconds after which a watcher that stopped reporting counts as gone
KEPT = 86_400.0  # seconds for which an expired row stays available for inspection


class ApprovalState(StrEnum):
    """The state of a question."""

    ASKED = "asked"
    PENDING = "pending"
    APPROVED = "approved"
    RUNNING = "running"
    KEPT = "kept"
    USED = "used"
    DENIED = "denied"
    TOLD = "told"


OPEN = (ApprovalState.ASKED, ApprovalState.PENDING)  # states in which a user can still answer


@dataclass(frozen=True, slots=True)
class ProgramOffer:
    """What a user can allow for the rest of the program that makes the call."""

    run: str
    name: str  # the program, and the route by which it makes the call
    more: int
    same: str = ""  # the rule for calls like this one; empty if no rule is safe
    whole: str = ""  # the rule for all calls of the tool; empty if that allows too much


@dataclass(frozen=True, slots=True)
class Asked:
    """The subject of a question."""

    identity: Identity
    root: str
    digest: str
    tool: str
    client: str
    shown: str
    reason: str
    rule: str  # the rule that would allow similar calls for a while; empty if there is none
    offers: tuple[tuple[str, ...], ...] = ()  # permanent rules, narrowest first
    program: ProgramOffer | None = None  # for the program that makes the call


@dataclass(frozen=True, slots=True)
class Approval:
    """A question and its state."""

    ticket: str  # identifies it, 32 hexadecimal characters
    asked: Asked
    state: ApprovalState
    decided_by: str  # who answered; empty while it is open
    created: float  # Unix seconds
    expires: float  # Unix seconds after which it is invalid
    said: str = ""  # the answer, if it is more than yes or no


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule that a user allowed for a while."""

    grant_id: str  # identifies it, 16 hexadecimal characters
    identity: Identity
    client: str  # the client that asked, by the name that it reports
    root: str
    rule: str
    granted_by: str
    expires: float  # Unix seconds


class ApprovalStore:
    """Stores questions, answers and grants; each change is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, asked: Asked, state: ApprovalState, seconds: float) -> str:
        """Stores a question, or moves an open one to the command line; returns its ticket."""
        now = time.time()
        with self._database.write() as connection:
            connection.execute("DELETE FROM approvals WHERE expires < ?", (now - KEPT,))
            connection.execute("DELETE FROM grants WHERE expires < ?", (now - KEPT,))
            if state is ApprovalState.PENDING:
                row = connection.execute(
                    "UPDATE approvals SET state = ?, program = ?, expires = ? "
                    f"WHERE ticket = (SELECT max(ticket) FROM approvals WHERE {_SAME} "
                    "AND state IN (?, ?) AND expires > ?) RETURNING ticket",
                    (state, _pack_program(asked.program), now + seconds, *_same(asked), *OPEN, now),
                ).fetchone()
                if row is not None:
                    return str(row["ticket"])
            row = {name: getattr(asked, name) for name in _PLAIN} | asdict(asked.identity)
            row |= {
                "ticket": secrets.token_hex(16),
                "offers": json.dumps(asked.offers),
                "program": _pack_program(asked.program),
                "state": state,
                "created": now,
                "expires": now + seconds,
            }
            insert_row(connection, "approvals", row)
            return str(row["ticket"])

    def find(self, prefix: str) -> list[Approval]:
        """Returns the questions whose tickets have this prefix."""
        return self._select("substr(ticket, 1, ?) = ?", (len(prefix), prefix.lower()))

    def waiting(self) -> list[Approval]:
        """Returns the questions that a user can answer, oldest first."""
        return self._select(
            f"state IN ({', '.join('?' * len(OPEN))}) AND expires > ?", (*OPEN, time.time())
        )

    def among(self, asked: Asked, tickets: Sequence[str]) -> str | None:
        """Returns the ticket among these that is for this call, still open and with a client."""
        found = self._select(
            f"{_SAME} AND state = ? AND expires > ?",
            (*_same(asked), ApprovalState.ASKED, time.time()),
        )
        return next((each.ticket for each in found if each.ticket in tickets), None)

    def state(self, ticket: str) -> ApprovalState | None:
        """Returns the state of a question; None if it does not exist or has expired."""
        found = self._select("ticket = ? AND expires > ?", (ticket, time.time()))
        return found[0].state if found else None

    def answer(
        self,
        ticket: str,
        *,
        approved: bool,
        by: str,
        said: str = "",
        program: ProgramOffer | None = None,
    ) -> bool:
        """Answers a question and returns whether it was still open.

        `said` is the answer if it is more than yes or no. `program` is the offer that the user saw,
        which may be for an earlier run of the program by now.
        """
        state = ApprovalState.APPROVED if approved else ApprovalState.DENIED
        changed = self._database.change(
            "UPDATE approvals SET state = ?, decided_by = ?, said = ? WHERE ticket = ? "
            f"AND state IN ({', '.join('?' * len(OPEN))}) AND expires > ? "
            "AND (? = '' OR program = ?)",
            (state, by, said, ticket, *OPEN, time.time(), said, _pack_program(program)),
        )
        return changed == 1

    def claim(self, asked: Asked, tickets: Sequence[str] = ()) -> Approval | None:
        """Takes an approval of exactly this call; a KEPT one needs its ticket among those sent."""
        for ticket in tickets:
            found = self._move(asked, ApprovalState.KEPT, ApprovalState.RUNNING, ticket)
            if found is not None:
                return found
        return self._move(asked, ApprovalState.APPROVED, ApprovalState.RUNNING)

    def denial(self, asked: Asked) -> Approval | None:
        """Takes a denial of exactly this call, so that it is reported once."""
        return self._move(asked, ApprovalState.DENIED, ApprovalState.TOLD)

    def close(self, ticket: str, state: ApprovalState) -> None:
        """Ends a claimed approval.

        USED ends it. KEPT keeps it for a repeated call that sends the ticket, and APPROVED for the
        same call if it cannot send one.
        """
        forgotten = ", shown = ''" if state is ApprovalState.USED else ""
        self._database.change(
            f"UPDATE approvals SET state = ?{forgotten} WHERE ticket = ? AND state = ?",
            (state, ticket, ApprovalState.RUNNING),
        )

    def grant(self, asked: Asked, *, by: str, seconds: float) -> None:
        """Grants the rule of a question for a while."""
        now = time.time()
        row = asdict(asked.identity) | {"root": asked.root, "rule": asked.rule, "granted_by": by}
        row |= {
            "client": asked.client,
            "grant_id": secrets.token_hex(8),
            "created": now,
            "expires": now + seconds,
        }
        with self._database.write() as connection:
            insert_row(connection, "grants", row)

    def grants(
        self, identity: Identity | None = None, root: str = "", client: str = ""
    ) -> list[Grant]:
        """Returns the valid grants: all, or one identity's within one root and for one client."""
        where = Where("g.expires > ?", (time.time(),))
        if identity is not None:
            of_client = Where("g.root = ? AND g.client = ?", (root, client))
            where = Where.every([where, exactly(identity, "g"), of_client])
        rows = self._database.rows(
            f"SELECT * FROM grants g WHERE {where.sql} ORDER BY g.created", where.values
        )
        plain = [name for name in Grant.__slots__ if name != "identity"]
        return [
            Grant(identity=identity_of(row), **{name: row[name] for name in plain}) for row in rows
        ]

    def revoke(self, prefix: str) -> int:
        """Revokes the grants whose ids have this prefix and returns how many."""
        return self._database.change(
            "DELETE FROM grants WHERE substr(grant_id, 1, ?) = ?", (len(prefix), prefix.lower())
        )

    def forget(self, tool: str) -> None:
        """Deletes the questions and grants of a tool whose name now belongs to another tool."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM grants WHERE rule = ?", (tool,))
            connection.execute(
                "DELETE FROM approvals WHERE tool = ? AND state != ?", (tool, ApprovalState.USED)
            )

    def watch(self, watcher: str) -> None:
        """Reports that a user has the list of questions open; repeated every second or so."""
        now = time.time()
        with self._database.write() as connection:
            connection.execute("DELETE FROM approval_watchers WHERE seen < ?", (now - WATCHED,))
            connection.execute(
                "INSERT OR REPLACE INTO approval_watchers VALUES (?, ?)", (watcher, now)
            )

    def leave(self, watcher: str) -> None:
        """Reports that the list was closed."""
        self._database.change("DELETE FROM approval_watchers WHERE watcher = ?", (watcher,))

    def is_watched(self) -> bool:
        """Returns whether a user has the list of questions open."""
        found = "SELECT 1 FROM approval_watchers WHERE seen >= ?"
        return bool(self._database.rows(found, (time.time() - WATCHED,)))

    def _move(
        self, asked: Asked, before: ApprovalState, after: ApprovalState, ticket: str = ""
    ) -> Approval | None:
        condition = f"{_SAME} AND state = ? AND expires > ? AND (? = '' OR ticket = ?)"
        values = (*_same(asked), before, time.time(), ticket, ticket)
        if not self._select(condition, values):  # the ordinary case takes no write lock
            return None
        with self._database.write() as connection:
            row = connection.execute(
                f"SELECT * FROM approvals WHERE {condition} ORDER BY created", values
            ).fetchone()
            if row is None:  # another call was faster
                return None
            connection.execute(
                "UPDATE approvals SET state = ? WHERE ticket = ?", (after, row["ticket"])
            )
        return _approval(row)

    def _select(self, condition: str, values: Sequence[object]) -> list[Approval]:
        found = f"SELECT * FROM approvals WHERE {condition} ORDER BY created, ticket"
        return list(map(_approval, self._database.rows(found, values)))


_PLAIN = ("root", "digest", "tool", "client", "shown", "reason", "rule")
_SAME = "user_id = ? AND device_id = ? AND agent_id = ? AND root = ? AND digest = ?"


def _same(asked: Asked) -> tuple[str, ...]:
    own = asked.identity
    return own.user_id, own.device_id, own.agent_id, asked.root, asked.digest


def _pack_program(program: ProgramOffer | None) -> str:
    return "" if program is None else json.dumps(asdict(program))


def _approval(row: sqlite3.Row) -> Approval:
    asked = Asked(
        identity_of(row),
        **{name: row[name] for name in _PLAIN},
        offers=tuple(map(tuple, json.loads(row["offers"]))),
        program=ProgramOffer(**json.loads(row["program"])) if row["program"] else None,
    )
    others = (row[name] for name in ("decided_by", "created", "expires", "said"))
    return Approval(row["ticket"], asked, ApprovalState(row["state"]), *others)
