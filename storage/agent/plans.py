"""Plans: the steps that agents work through, several plans a session."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from typing import Literal

from pydantic_core import from_json, to_json

from storage.agent.steps import NAMED, OVER, Draft, Step, replanned
from storage.database import Database, View, Where, exactly, insert_row, update_row
from storage.errors import PlanConflictError, PlanNotFoundError
from storage.models import Identity, NewContext

PlanStatus = Literal["open", "completed", "abandoned"]

GOAL_CHARACTERS = 80  # the characters of a plan's goal that an error quotes

Change = Callable[[Sequence[Step]], Sequence[Step]]
"""Returns the changed steps, or raises if the change is illegal; then nothing is changed."""

_PLANNED = itemgetter(slice(4))
_PROGRESS = itemgetter(slice(4, None))
"""Steps are stored in two parts: the plan itself, and the progress."""

Tell = Callable[["Plan"], NewContext]  # builds the event that is stored when a plan is closed


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan with its steps."""

    id: str
    session_id: str
    goal: str
    reasoning: str
    status: PlanStatus  # whether it is open, completed or abandoned
    message: str
    output: str
    create_time: float  # Unix seconds
    update_time: float  # Unix seconds
    steps: tuple[Step, ...] = ()  # in their order


@dataclass(frozen=True, slots=True)
class ListedPlan:
    """A plan as it appears in a list."""

    id: str
    goal: str
    status: PlanStatus  # whether it is worked on
    over: int
    total: int
    update_time: float  # Unix seconds


def _nothing() -> None:
    """Does nothing: no embedding queue is attached."""


class Plans:
    """Reads and changes the plans of one identity only.

    Where a method takes a plan's id, an empty one means the newest open plan that the session
    created or changed last. A session that changes another session's plan takes it over.
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
        row = asdict(self._identity) | {name: getattr(plan, name) for name in Plan.__slots__}
        row |= {"steps": planned_of(steps), "progress": progress_of(steps)}
        with self._database.write() as connection:
            insert_row(connection, "plans", row | {"continued_in": session_id})
        return plan

    def get(self, session_id: str, plan_id: str = "") -> Plan:
        """Returns a plan."""
        with self._database.read() as connection:
            return _load(View(connection, self._identity), session_id, plan_id)[1]

    def change(self, session_id: str, plan_id: str, change: Change) -> Plan:
        """Changes the current steps of an open plan in one transaction."""
        with self._database.write() as connection:
            seq, plan = _load(View(connection, self._identity), session_id, plan_id)
            _check_open(plan)
            steps = tuple(change(plan.steps))
            now = time.time()
            row = {"progress": progress_of(steps), "continued_in": session_id, "update_time": now}
            if list(map(_PLANNED, steps)) != list(map(_PLANNED, plan.steps)):  # it is long
                row["steps"] = planned_of(steps)
            update_row(connection, "plans", row, {"seq": seq})
        return replace(plan, steps=steps, update_time=now)

    def close(  # noqa: PLR0913  # all that closes it
        self,
        session_id: str,
        plan_id: str,
        message: str,
        output: str,
        *,
        tell: Tell,
        abandon: bool = False,
    ) -> tuple[Plan, str]:
        """Closes an open plan and stores an event about it; returns the plan and the event's id."""
        from storage.contexts.contexts import insert_whole, read_context
        from storage.contexts.ingestion import normalized, prepare

        with self._database.write() as connection:
            seq, plan = _load(View(connection, self._identity), session_id, plan_id)
            _check_open(plan)
            left = [step for step in plan.steps if step.status not in OVER]
            if left and not abandon:
                raise _open_steps_error(plan, left)
            status: PlanStatus = "abandoned" if left else "completed"
            now = time.time()
            plan = replace(plan, status=status, message=message, output=output, update_time=now)
            row = {"status": status, "message": message, "output": output, "update_time": now}
            update_row(connection, "plans", row | {"continued_in": session_id}, {"seq": seq})
            new = normalized(tell(plan))
            event, _ = insert_whole(View(connection, self._identity), new, prepare(new), now)
            event_id = read_context(connection, event).id
        self._added()
        return plan, event_id

    def has_open(self, session_id: str) -> bool:
        """Returns whether the session has an open plan, which an empty id would mean."""
        with self._database.read() as connection:
            return _find(View(connection, self._identity), _open_in(session_id)) is not None

    def listed(self, limit: int, offset: int = 0, *, closed: bool = False) -> list[ListedPlan]:
        """Returns the plans of all sessions, the last changed first."""
        with self._database.read() as connection:
            return _list(View(connection, self._identity), limit, offset, closed=closed)

    def count(self) -> int:
        """Returns the number of plans, closed ones included."""
        own = exactly(self._identity, "p")
        found = f"SELECT count(*) FROM plans p WHERE {own.sql}"
        return int(self._database.rows(found, own.values)[0][0])


def _list(view: View, limit: int, offset: int, *, closed: bool) -> list[ListedPlan]:
    own = view.own("p")
    wanted = "" if closed else " AND p.status = 'open'"
    rows = view.rows(
        "SELECT p.id, p.goal, p.status,"
        " (SELECT count(*) FROM json_each(p.progress) s"
        " WHERE s.value ->> 0 IN ('completed', 'skipped')) AS over,"
        " json_array_length(p.progress) AS total,"
        f" p.update_time FROM plans p WHERE {own.sql}{wanted}"
        " ORDER BY p.update_time DESC, p.seq DESC LIMIT ? OFFSET ?",
        (*own.values, limit, offset),
    )
    return [ListedPlan(*row) for row in rows]


def _load(view: View, session_id: str, plan_id: str) -> tuple[int, Plan]:
    row = _find(view, Where("p.id = ?", (plan_id,)) if plan_id else _open_in(session_id))
    if row is None:
        raise _not_found_error(view, plan_id)
    fields = {key: row[key] for key in Plan.__slots__ if key != "steps"}
    return row["seq"], Plan(**fields, steps=_steps(row["steps"], row["progress"]))


def _find(view: View, wanted: Where) -> sqlite3.Row | None:
    where = Where.every([view.own("p"), wanted])
    return view.row(
        f"SELECT p.* FROM plans p WHERE {where.sql} ORDER BY p.seq DESC LIMIT 1", where.values
    )


def _not_found_error(view: View, plan_id: str) -> PlanNotFoundError:
    others = _list(view, NAMED, 0, closed=False)
    wrong = f"Plan {plan_id!r} does not exist" if plan_id else "This session has no open plan"
    return PlanNotFoundError(
        f"{wrong}; {len(others) or 'no'} other{'' if len(others) == 1 else 's'} open.",
        suggestions=("Name one by plan_id, or make one with `create_plan`.",),
        candidates=tuple(f"{each.id} ({each.goal[:GOAL_CHARACTERS]})" for each in others),
    )


def _open_in(session_id: str) -> Where:
    """Returns the condition for the plans a session works on, which an empty id means."""
    return Where(
        "p.status = 'open' AND (p.session_id = ? OR p.continued_in = ?)", (session_id, session_id)
    )


def planned_of(steps: Sequence[Step]) -> str:
    """Serializes what the steps are, as the record stores it."""
    return to_json(list(map(_PLANNED, steps))).decode()


def progress_of(steps: Sequence[Step]) -> str:
    """Serializes the progress of the steps, as the record stores it."""
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


def _open_steps_error(plan: Plan, left: Sequence[Step]) -> PlanConflictError:
    named = ", ".join(f"{step.id!r} ({step.status.replace('_', ' ')})" for step in left[:NAMED])
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    return PlanConflictError(
        f"Plan {plan.id!r} has open steps: {named}{more}.",
        suggestions=(
            "Complete or skip them with `update_plan`, or call `done` with abandon=true.",
        ),
    )
