"""Plans: what agents work towards step by step, several a session."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Literal

from pydantic_core import from_json, to_json

from storage.agent.steps import NAMED, OVER, Draft, Step, replanned
from storage.database import Database, Where, exactly
from storage.errors import PlanConflictError, PlanNotFoundError
from storage.models import Identity, NewContext

PlanStatus = Literal["open", "completed", "abandoned"]

GOAL_CHARACTERS = 80
"""Of a plan that an error names."""

Change = Callable[[Sequence[Step]], Sequence[Step]]
"""What becomes of the steps; it raises if it is not legal, and nothing is changed."""

_PLANNED = itemgetter(slice(4))
_PROGRESS = itemgetter(slice(4, None))
"""The two parts in which steps are stored: what is done in one, and how far it is."""

Tell = Callable[["Plan"], NewContext]
"""What is kept of a plan that is closed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan with its steps.

    Attributes:
        id: What tells it from the others of its identity.
        session_id: The session that made it.
        goal: What it is for.
        reasoning: Why it is as it is.
        status: Whether it is worked on.
        message: What was said of it when it was closed.
        output: What came of it.
        create_time: Unix seconds.
        update_time: Unix seconds.
        steps: In their order.
    """

    id: str
    session_id: str
    goal: str
    reasoning: str
    status: PlanStatus
    message: str
    output: str
    create_time: float
    update_time: float
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedPlan:
    """A plan in a list.

    Attributes:
        id: Which one.
        goal: What it is for.
        status: Whether it is worked on.
        over: How many of its steps are completed or skipped.
        total: How many it has.
        update_time: Unix seconds.
    """

    id: str
    goal: str
    status: PlanStatus
    over: int
    total: int
    update_time: float


def _nothing() -> None:
    """Nobody embeds what is added."""


class Plans:
    """The plans of one identity; nobody else's are read or changed.

    Where a method takes a plan's id, an empty one means the newest open plan that the session made
    or was the last to change. Whoever changes a plan of another session goes on with it.

    Args:
        identity: Whose; a plan is found again under this very identity only.
        database: The record.
        added: Called when an event was kept.
    """

    def __init__(
        self, identity: Identity, database: Database, added: Callable[[], None] = _nothing
    ) -> None:
        self._identity = identity
        self._database = database
        self._added = added

    def create(
        self, session_id: str, goal: str, drafts: Sequence[Draft], reasoning: str = ""
    ) -> Plan:
        """Stores a new plan."""
        steps, now = tuple(replanned((), drafts)), time.time()
        new_id = secrets.token_hex(4)
        plan = Plan(new_id, session_id, goal, reasoning, "open", "", "", now, now, steps)
        own = exactly(self._identity, "p").values
        written = planned_of(steps), progress_of(steps)
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO plans (user_id, device_id, agent_id, id, session_id, continued_in,"
                " goal, reasoning, status, message, output, create_time, update_time, steps,"
                " progress) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', '', '', ?, ?, ?, ?)",
                (*own, plan.id, session_id, session_id, goal, reasoning, now, now, *written),
            )
        return plan

    def get(self, session_id: str, plan_id: str = "") -> Plan:
        """A plan.

        Raises:
            PlanNotFoundError: If there is none.
        """
        with self._database.read() as connection:
            return self._found(connection, session_id, plan_id)[1]

    def change(self, session_id: str, plan_id: str, change: Change) -> Plan:
        """Changes the steps of an open plan as they are at that moment, all at once.

        Raises:
            PlanNotFoundError: If there is none.
        """
        with self._database.write() as connection:
            seq, plan = self._found(connection, session_id, plan_id)
            _check_open(plan)
            steps = tuple(change(plan.steps))
            now = time.time()
            connection.execute(
                "UPDATE plans SET progress = ?, continued_in = ?, update_time = ? WHERE seq = ?",
                (progress_of(steps), session_id, now, seq),
            )
            if list(map(_PLANNED, steps)) != list(map(_PLANNED, plan.steps)):  # it is long
                connection.execute(
                    "UPDATE plans SET steps = ? WHERE seq = ?", (planned_of(steps), seq)
                )
        return replace(plan, steps=steps, update_time=now)

    def close(  # noqa: PLR0913  # what is said of it
        self,
        session_id: str,
        plan_id: str,
        message: str,
        output: str,
        *,
        tell: Tell,
        abandon: bool = False,
    ) -> tuple[Plan, str]:
        """Closes an open plan and keeps an event that tells of it, both or none.

        Args:
            session_id: Which session asks.
            plan_id: Which plan.
            message: What is said of it.
            output: What came of it.
            tell: Makes the event of the plan as it is then.
            abandon: Whether steps may be left open.

        Returns:
            The plan, and the id of the event.

        Raises:
            PlanNotFoundError: If there is none.
        """
        from storage.contexts.contexts import insert_whole, read_context
        from storage.contexts.ingestion import normalized, prepare

        with self._database.write() as connection:
            seq, plan = self._found(connection, session_id, plan_id)
            _check_open(plan)
            left = [step for step in plan.steps if step.status not in OVER]
            if left and not abandon:
                raise _still_open(plan, left)
            status: PlanStatus = "abandoned" if left else "completed"
            now = time.time()
            connection.execute(
                "UPDATE plans SET status = ?, message = ?, output = ?, continued_in = ?,"
                " update_time = ? WHERE seq = ?",
                (status, message, output, session_id, now, seq),
            )
            plan = replace(plan, status=status, message=message, output=output, update_time=now)
            new = normalized(tell(plan))
            event, _ = insert_whole(connection, self._identity, new, prepare(new), now)
            event_id = read_context(connection, event).id
        self._added()
        return plan, event_id

    def has_open(self, session_id: str) -> bool:
        """Whether an empty id means a plan of this session."""
        with self._database.read() as connection:
            return self._one(connection, _open_in(session_id), "1") is not None

    def listed(self, limit: int, offset: int = 0, *, closed: bool = False) -> list[ListedPlan]:
        """The plans of every session, those that were changed last first.

        Args:
            limit: How many.
            offset: How many are left out before.
            closed: Whether those that are closed are listed too.
        """
        with self._database.read() as connection:
            return self._listed(connection, limit, offset, closed=closed)

    def count(self) -> int:
        """How many there are, closed ones too."""
        own = exactly(self._identity, "p")
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM plans p WHERE {own.sql}", own.values
            ).fetchone()
        return int(row[0])

    def _listed(
        self, connection: sqlite3.Connection, limit: int, offset: int, *, closed: bool
    ) -> list[ListedPlan]:
        own = exactly(self._identity, "p")
        wanted = "" if closed else " AND p.status = 'open'"
        rows = connection.execute(
            "SELECT p.id, p.goal, p.status,"
            " (SELECT count(*) FROM json_each(p.progress) s"
            " WHERE s.value ->> 0 IN ('completed', 'skipped')) AS over,"
            " json_array_length(p.progress) AS total,"
            f" p.update_time FROM plans p WHERE {own.sql}{wanted}"
            " ORDER BY p.update_time DESC, p.seq DESC LIMIT ? OFFSET ?",
            (*own.values, limit, offset),
        )
        return [ListedPlan(*row) for row in rows]

    def _found(
        self, connection: sqlite3.Connection, session_id: str, plan_id: str
    ) -> tuple[int, Plan]:
        wanted = Where("p.id = ?", (plan_id,)) if plan_id else _open_in(session_id)
        row = self._one(connection, wanted, "p.*")
        if row is None:
            raise self._not_found(connection, plan_id)
        told = {key: row[key] for key in Plan.__slots__ if key != "steps"}
        return row["seq"], Plan(**told, steps=_steps(row["steps"], row["progress"]))

    def _one(
        self, connection: sqlite3.Connection, wanted: Where, columns: str
    ) -> sqlite3.Row | None:
        own = exactly(self._identity, "p")
        found: sqlite3.Row | None = connection.execute(
            f"SELECT {columns} FROM plans p WHERE {own.sql} AND {wanted.sql}"
            " ORDER BY p.seq DESC LIMIT 1",
            (*own.values, *wanted.values),
        ).fetchone()
        return found

    def _not_found(self, connection: sqlite3.Connection, plan_id: str) -> PlanNotFoundError:
        others = self._listed(connection, NAMED, 0, closed=False)
        wrong = f"There is no plan {plan_id!r}" if plan_id else "This session has no open plan"
        return PlanNotFoundError(
            f"{wrong}; {len(others) or 'no'} other{'' if len(others) == 1 else 's'} open.",
            suggestions=("Name one by plan_id, or make one with `create_plan`.",),
            candidates=tuple(f"{each.id} ({each.goal[:GOAL_CHARACTERS]})" for each in others),
        )


def _open_in(session_id: str) -> Where:
    """What an empty id means: the plans that a session works on."""
    return Where(
        "p.status = 'open' AND (p.session_id = ? OR p.continued_in = ?)", (session_id, session_id)
    )


def planned_of(steps: Sequence[Step]) -> str:
    """What the steps are, as the record has it."""
    return to_json(list(map(_PLANNED, steps))).decode()


def progress_of(steps: Sequence[Step]) -> str:
    """How far each of them is, as the record has it."""
    return to_json(list(map(_PROGRESS, steps))).decode()


def _steps(planned: str, progress: str) -> tuple[Step, ...]:
    return tuple(
        Step(step_id, title, detail, tuple(blocked_by), *how_far)
        for (step_id, title, detail, blocked_by), how_far in zip(
            from_json(planned, cache_strings="none"), from_json(progress), strict=True
        )
    )


def _check_open(plan: Plan) -> None:
    if plan.status != "open":
        raise PlanConflictError(
            f"Plan {plan.id!r} is {plan.status}, and closed for good.",
            suggestions=("Make another one with `create_plan`.",),
        )


def _still_open(plan: Plan, left: Sequence[Step]) -> PlanConflictError:
    named = ", ".join(f"{step.id!r} ({step.status.replace('_', ' ')})" for step in left[:NAMED])
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    return PlanConflictError(
        f"Plan {plan.id!r} has open steps: {named}{more}.",
        suggestions=(
            "Complete or skip them with `update_plan`, or call `done` with abandon=true.",
        ),
    )
