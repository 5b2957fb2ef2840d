"""Approvals: what a person was asked about a call, and what they allowed for a while."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from storage.database import Database
from storage.models import Identity

WATCHED = 3.0
"""Seconds after which a watcher that was not seen again is gone."""

KEPT = 86_400.0
"""Seconds that an expired row is kept, to be looked at."""


class ApprovalState(StrEnum):
    """Where a question stands."""

    ASKED = "asked"
    PENDING = "pending"
    APPROVED = "approved"
    RUNNING = "running"
    KEPT = "kept"
    USED = "used"
    DENIED = "denied"
    TOLD = "told"


OPEN = (ApprovalState.ASKED, ApprovalState.PENDING)
"""States in which a person can still answer."""


@dataclass(frozen=True, slots=True)
class ProgramOffer:
    """What can be allowed to the rest of a program, which makes the call that is asked about.

    Attributes:
        run: Tells this run of it from any other.
        name: The program, and through what it makes the call.
        more: How many calls it may still make.
        same: The rule of calls like this one; empty where none is safe.
        whole: The rule of all calls of the tool; empty where that would be too much.
    """

    run: str
    name: str
    more: int
    same: str = ""
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question is about.

    Attributes:
        identity: Whose call it is.
        root: The root of the server that was called.
        digest: Tells the call from any other.
        tool: The tool's name.
        client: Name of the client.
        shown: What the call would do.
        reason: Why somebody is asked.
        rule: What would allow its like for a while; empty where nothing would.
        offers: Rules that would allow its like from now on, the narrowest first.
        program: What would allow its like to the program that makes it; None where none does.
    """

    identity: Identity
    root: str
    digest: str
    tool: str
    client: str
    shown: str
    reason: str
    rule: str
    offers: tuple[tuple[str, ...], ...] = ()
    program: ProgramOffer | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """A question, and where it stands.

    Attributes:
        ticket: Names it, 32 hexadecimal characters.
        asked: What it is about.
        state: Where it stands.
        decided_by: Who answered; empty while nobody has.
        created: Unix seconds.
        expires: Unix seconds after which it counts for nothing.
        said: What was answered, where that is more than yes or no.
    """

    ticket: str
    asked: Asked
    state: ApprovalState
    decided_by: str
    created: float
    expires: float
    said: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule that a person allowed for a while.

    Attributes:
        grant_id: Names it, 16 hexadecimal characters.
        identity: Whose calls it allows.
        root: The root beneath which it does.
        rule: What it allows.
        granted_by: Who allowed it.
        expires: Unix seconds.
    """

    grant_id: str
    identity: Identity
    root: str
    rule: str
    granted_by: str
    expires: float


class ApprovalStore:
    """Keeps questions, answers and grants; each change is one transaction.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, asked: Asked, state: ApprovalState, seconds: float) -> str:
        """The ticket of a new question; one that is open turns to the command line with its ticket.

        Args:
            asked: What it is about.
            state: ASKED or PENDING.
            seconds: For how long an answer counts.
        """
        now = time.time()
        with self._database.write() as connection:
            connection.execute("DELETE FROM approvals WHERE expires < ?", (now - KEPT,))
            connection.execute("DELETE FROM grants WHERE expires < ?", (now - KEPT,))
            if state is ApprovalState.PENDING:
                row = connection.execute(
                    "UPDATE approvals SET state = ?, program = ?, expires = ? "
                    f"WHERE ticket = (SELECT max(ticket) FROM approvals WHERE {_SAME} "
                    "AND state IN (?, ?) AND expires > ?) RETURNING ticket",
                    (state, _packed(asked.program), now + seconds, *_same(asked), *OPEN, now),
                ).fetchone()
                if row is not None:
                    return str(row["ticket"])
            ticket = secrets.token_hex(16)
            connection.execute(
                f"INSERT INTO approvals ({', '.join(_COLUMNS)}) "
                f"VALUES ({', '.join('?' * len(_COLUMNS))})",
                (
                    ticket,
                    *_same(asked),
                    asked.tool,
                    asked.client,
                    asked.shown,
                    asked.reason,
                    asked.rule,
                    json.dumps(asked.offers),
                    _packed(asked.program),
                    state,
                    "",
                    now,
                    now + seconds,
                ),
            )
            return ticket

    def find(self, prefix: str) -> list[Approval]:
        """The questions whose tickets begin so."""
        return self._select("substr(ticket, 1, ?) = ?", (len(prefix), prefix.lower()))

    def waiting(self) -> list[Approval]:
        """The questions that a person can answer, oldest first."""
        return self._select(
            f"state IN ({', '.join('?' * len(OPEN))}) AND expires > ?", (*OPEN, time.time())
        )

    def among(self, asked: Asked, tickets: Sequence[str]) -> str | None:
        """Which of some tickets is that of this very call, still open and of a client's."""
        found = self._select(
            f"{_SAME} AND state = ? AND expires > ?",
            (*_same(asked), ApprovalState.ASKED, time.time()),
        )
        return next((each.ticket for each in found if each.ticket in tickets), None)

    def state(self, ticket: str) -> ApprovalState | None:
        """Where a question stands; None if there is none, or it has expired."""
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
        """Answers an open question; whether it was still open.

        Args:
            ticket: Names it.
            approved: Whether the call may run.
            by: Who answers.
            said: What they say, where that is more than yes or no.
            program: What was offered to them then: by now it may be to another run.
        """
        state = ApprovalState.APPROVED if approved else ApprovalState.DENIED
        with self._database.write() as connection:
            changed = connection.execute(
                "UPDATE approvals SET state = ?, decided_by = ?, said = ? WHERE ticket = ? "
                f"AND state IN ({', '.join('?' * len(OPEN))}) AND expires > ? "
                "AND (? = '' OR program = ?)",
                (state, by, said, ticket, *OPEN, time.time(), said, _packed(program)),
            )
            return changed.rowcount == 1

    def claim(self, asked: Asked, tickets: Sequence[str] = ()) -> Approval | None:
        """Takes an approval of this very call, which nobody else can take then; None if none is.

        Args:
            asked: The call.
            tickets: What came with it; an approval that was kept is for the call that names it.
        """
        for ticket in tickets:
            found = self._move(asked, ApprovalState.KEPT, ApprovalState.RUNNING, ticket)
            if found is not None:
                return found
        return self._move(asked, ApprovalState.APPROVED, ApprovalState.RUNNING)

    def denial(self, asked: Asked) -> Approval | None:
        """Takes a denial of this very call, so that it is told once; None if there is none."""
        return self._move(asked, ApprovalState.DENIED, ApprovalState.TOLD)

    def close(self, ticket: str, state: ApprovalState) -> None:
        """Ends what was claimed.

        Args:
            ticket: Names it.
            state: USED; KEPT for the call that names the ticket when it comes again; or APPROVED
                for the same call, which cannot name it.
        """
        forgotten = ", shown = ''" if state is ApprovalState.USED else ""
        with self._database.write() as connection:
            connection.execute(
                f"UPDATE approvals SET state = ?{forgotten} WHERE ticket = ? AND state = ?",
                (state, ticket, ApprovalState.RUNNING),
            )

    def grant(self, asked: Asked, *, by: str, seconds: float) -> None:
        """Allows the rule of a question for a while."""
        now = time.time()
        own = asked.identity
        whose = (own.user_id, own.device_id, own.agent_id, asked.root)
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO grants VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (secrets.token_hex(8), *whose, asked.rule, by, now, now + seconds),
            )

    def grants(self, identity: Identity | None = None, root: str = "") -> list[Grant]:
        """What is allowed now: all of it, or to one identity beneath one root."""
        condition = "expires > ?"
        values: list[object] = [time.time()]
        if identity is not None:
            condition += " AND user_id = ? AND device_id = ? AND agent_id = ? AND root = ?"
            values += [identity.user_id, identity.device_id, identity.agent_id, root]
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT * FROM grants WHERE {condition} ORDER BY created", values
            ).fetchall()
        return [
            Grant(
                row["grant_id"],
                _identity(row),
                row["root"],
                row["rule"],
                row["granted_by"],
                row["expires"],
            )
            for row in rows
        ]

    def revoke(self, prefix: str) -> int:
        """Ends the grants whose names begin so; how many."""
        with self._database.write() as connection:
            return connection.execute(
                "DELETE FROM grants WHERE substr(grant_id, 1, ?) = ?",
                (len(prefix), prefix.lower()),
            ).rowcount

    def forget(self, tool: str) -> None:
        """Ends what was asked and allowed of one tool, which is another now under its name."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM grants WHERE rule = ?", (tool,))
            connection.execute(
                "DELETE FROM approvals WHERE tool = ? AND state != ?", (tool, ApprovalState.USED)
            )

    def watch(self, watcher: str) -> None:
        """Says that somebody has the list of questions open; again every second or so."""
        now = time.time()
        with self._database.write() as connection:
            connection.execute("DELETE FROM approval_watchers WHERE seen < ?", (now - WATCHED,))
            connection.execute(
                "INSERT OR REPLACE INTO approval_watchers VALUES (?, ?)", (watcher, now)
            )

    def leave(self, watcher: str) -> None:
        """Says that the list is closed."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM approval_watchers WHERE watcher = ?", (watcher,))

    def is_watched(self) -> bool:
        """Whether somebody has the list of questions open."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT 1 FROM approval_watchers WHERE seen >= ?", (time.time() - WATCHED,)
            ).fetchone()
        return row is not None

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
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT * FROM approvals WHERE {condition} ORDER BY created, ticket", values
            ).fetchall()
        return [_approval(row) for row in rows]


_COLUMNS = (
    *("ticket", "user_id", "device_id", "agent_id", "root", "digest", "tool", "client"),
    *("shown", "reason", "rule", "offers", "program", "state", "decided_by", "created", "expires"),
)
_SAME = "user_id = ? AND device_id = ? AND agent_id = ? AND root = ? AND digest = ?"


def _same(asked: Asked) -> tuple[str, ...]:
    own = asked.identity
    return own.user_id, own.device_id, own.agent_id, asked.root, asked.digest


def _identity(row: sqlite3.Row) -> Identity:
    return Identity(row["user_id"], row["device_id"], row["agent_id"])


def _packed(program: ProgramOffer | None) -> str:
    return "" if program is None else json.dumps(asdict(program))


def _approval(row: sqlite3.Row) -> Approval:
    asked = Asked(
        _identity(row),
        **{name: row[name] for name in ("root", "digest", "tool", "client")},
        **{name: row[name] for name in ("shown", "reason", "rule")},
        offers=tuple(map(tuple, json.loads(row["offers"]))),
        program=ProgramOffer(**json.loads(row["program"])) if row["program"] else None,
    )
    others = (row[name] for name in ("decided_by", "created", "expires", "said"))
    return Approval(row["ticket"], asked, ApprovalState(row["state"]), *others)
