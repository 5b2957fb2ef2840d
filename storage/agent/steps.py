"""Steps of a plan: which changes are legal, and which steps are ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import count
from typing import Literal, NamedTuple

from typing_extensions import ReadOnly, TypedDict

from storage.errors import InvalidSourceError, PlanConflictError

StepStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
"""The stored status of a step."""

StepState = Literal["completed", "skipped", "in_progress", "failed", "ready", "waiting", "stopped"]
"""The status, where a pending step is ready, waiting, or stopped by a failed one."""

MOST_STEPS = 1_000  # maximum steps of one plan
NAMED = 10  # maximum steps, or other plans, that an error lists

MOVES: Mapping[StepStatus, tuple[StepStatus, ...]] = {
    "pending": ("in_progress", "completed", "failed", "skipped"),
    "in_progress": ("pending", "completed", "failed", "skipped"),
    "failed": ("pending", "in_progress", "skipped"),
    "completed": (),
    "skipped": (),
}
"""The legal transitions of a status."""

OVER = frozenset[StepStatus]({"completed", "skipped"})
"""The final statuses; a step with one of these blocks no other."""

_WORK = frozenset[StepStatus]({"in_progress", "completed", "failed"})
"""Statuses that a blocked step cannot take."""


class Step(NamedTuple):  # dataclasses would take half the time of a call with 1,000 steps
    """A step of a plan."""

    id: str
    title: str
    detail: str = ""
    blocked_by: tuple[str, ...] = ()
    status: StepStatus = "pending"
    note: str = ""  # the latest note on its progress
    session_id: str = ""  # the session that set its status; empty for a new step


class Draft(TypedDict, total=False):
    """A new or changed step; an omitted field keeps its value or gets a default."""

    id: ReadOnly[str]  # the step to change; an unknown id makes a new step
    title: ReadOnly[str]
    detail: ReadOnly[str]
    blocked_by: ReadOnly[Sequence[str]]  # the ids of the steps that must be over first


def replanned(
    steps: Sequence[Step], drafts: Sequence[Draft], removed: Sequence[str] = ()
) -> list[Step]:
    """Returns the steps after removing some, changing some in place and appending new ones.

    A step without an id gets the next free number. A failed step that is changed becomes pending
    again.
    """
    left = {step.id: step for step in steps}
    for each in removed:
        step = left.pop(each, None) or named_step(tuple(left.values()), each)
        _check_not_over(step, "removed")
    taken = {*left, *(draft.get("id") for draft in drafts)}
    fresh = (str(number) for number in count(1) if str(number) not in taken)
    for draft in drafts:
        step_id = draft.get("id") or next(fresh)
        left[step_id] = _apply_draft(left.get(step_id), step_id, draft)
    return checked(list(left.values()))


def moved(
    steps: Sequence[Step], step_id: str, status: StepStatus | None, note: str | None, session: str
) -> list[Step]:
    """Returns the steps after one got another status or note.

    A session may repeat a status that it set itself. Another session may not: it did not start the
    step.
    """
    by_id = {step.id: step for step in steps}
    step = named_step(steps, step_id)
    if note is not None:
        step = step._replace(note=note)
    is_repeat = status == step.status and (status == "pending" or session == step.session_id)
    if status is not None and not is_repeat:
        _check_move(by_id, step, status)
        step = step._replace(status=status, session_id=session)
    return [step if each.id == step_id else each for each in steps]


def checked(steps: Sequence[Step]) -> list[Step]:
    """Returns the steps if they make a valid plan."""
    if len(steps) > MOST_STEPS:
        raise InvalidSourceError(
            f"A plan has at most {MOST_STEPS} steps, not {len(steps)}.",
            suggestions=("Combine several steps, or move the later ones to another plan.",),
        )
    by_id = {step.id: step for step in steps}
    before: set[str] = set()
    is_in_order = True
    for step in steps:
        if not before.issuperset(step.blocked_by):
            _check_known(by_id, step)
            is_in_order = False
        if step.status == "in_progress":
            _check_free(by_id, step, "in progress")
        before.add(step.id)
    if not is_in_order:  # where each waits for earlier ones alone, there is no circle
        _check_no_circle(steps)
    return list(steps)


def named_step(steps: Sequence[Step], step_id: str) -> Step:
    """Returns the step with an id."""
    for step in steps:
        if step.id == step_id:
            return step
    import difflib

    raise InvalidSourceError(
        f"The plan has no step {step_id!r}.",
        suggestions=("Use an id that `get_plan` lists.",),
        candidates=difflib.get_close_matches(step_id, [step.id for step in steps], n=3),
    )


def states_of(steps: Sequence[Step]) -> dict[str, StepState]:
    """Returns the state of each step, in order."""
    over = {step.id for step in steps if step.status in OVER}
    stopped = _behind_failed(steps)
    states: dict[str, StepState] = {}
    for step in steps:
        if step.status != "pending":
            states[step.id] = step.status
        elif step.id in stopped:
            states[step.id] = "stopped"
        else:
            states[step.id] = "ready" if over.issuperset(step.blocked_by) else "waiting"
    return states


def waits_for(by_id: Mapping[str, Step], step: Step) -> list[Step]:
    """Returns the steps that block a step and are not over."""
    before = dict.fromkeys(step.blocked_by)  # one may be named twice
    return [by_id[each] for each in before if by_id[each].status not in OVER]


def _check_known(by_id: Mapping[str, Step], step: Step) -> None:
    for each in step.blocked_by:
        if each not in by_id:
            raise InvalidSourceError(
                f"Step {step.id!r} is blocked by {each!r}, which is not a step of the plan.",
                suggestions=(f"Add {each!r}, or change blocked_by of {step.id!r}.",),
            )


def _check_no_circle(steps: Sequence[Step]) -> None:
    try:
        TopologicalSorter({step.id: step.blocked_by for step in steps}).prepare()
    except CycleError as error:
        circle = [repr(step_id) for step_id in reversed(error.args[1])]
        more = f" and so on, {len(circle) - 1} steps" if len(circle) > NAMED else ""
        raise InvalidSourceError(
            f"These steps wait for each other: {' is blocked by '.join(circle[:NAMED])}{more}.",
            suggestions=("Take one of them out of a blocked_by.",),
        ) from None


def _behind_failed(steps: Sequence[Step]) -> set[str]:
    """Returns the steps that depend on a failed one, directly or through others."""
    reached = [step.id for step in steps if step.status == "failed"]
    if not reached:
        return set()
    behind: dict[str, list[str]] = {}
    for step in steps:
        if step.status not in OVER:
            for each in step.blocked_by:
                behind.setdefault(each, []).append(step.id)
    stopped: set[str] = set()
    while reached:
        new = [each for each in behind.get(reached.pop(), ()) if each not in stopped]
        stopped.update(new)
        reached.extend(new)
    return stopped


def _apply_draft(step: Step | None, step_id: str, draft: Draft) -> Step:
    title, detail, blockers = draft.get("title"), draft.get("detail"), draft.get("blocked_by")
    if step is None:
        if title is None:
            raise InvalidSourceError(
                f"Step {step_id!r} is new and has no title.",
                suggestions=("Give it one, or name a step of the plan.",),
            )
        return Step(step_id, title, detail or "", tuple(blockers or ()))
    _check_not_over(step, "changed")
    return step._replace(
        title=step.title if title is None else title,
        detail=step.detail if detail is None else detail,
        blocked_by=step.blocked_by if blockers is None else tuple(blockers),
        status="pending" if step.status == "failed" else step.status,
    )


def _check_not_over(step: Step, what: str) -> None:
    if step.status in OVER:
        raise PlanConflictError(
            f"Step {step.id!r} is {step.status} and cannot be {what}.",
            suggestions=("Add a step for the remaining work.",),
        )


def _check_move(by_id: Mapping[str, Step], step: Step, status: StepStatus) -> None:
    legal = MOVES[step.status]
    if status not in legal:
        is_same = status == step.status
        already = " already, in another session" if is_same and step.session_id else ""
        raise PlanConflictError(
            f"Step {step.id!r} is {_status_text(step.status)}{already}"
            + ("." if is_same else f" and cannot become {_status_text(status)}."),
            suggestions=(
                f"It can become {' or '.join(legal)}."
                if legal
                else "That is final: add a step for the remaining work.",
            ),
        )
    if status in _WORK:
        _check_free(by_id, step, _status_text(status))


def _check_free(by_id: Mapping[str, Step], step: Step, what: str) -> None:
    waits = waits_for(by_id, step)
    if waits:
        named = ", ".join(f"{each.id!r} ({_status_text(each.status)})" for each in waits)
        raise PlanConflictError(
            f"Step {step.id!r} cannot be {what}: it is blocked by {named}.",
            suggestions=("Finish, skip or replan those first, or change its blocked_by.",),
        )


def _status_text(status: StepStatus) -> str:
    return status.replace("_", " ")
