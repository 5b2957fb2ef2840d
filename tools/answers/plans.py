"""Plans as tools and resources answer them, and what they share with to-do lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, get_args

from pydantic import Field

from storage.agent.plans import ListedPlan, Plan, PlanStatus
from storage.agent.steps import MOST_STEPS, Step, StepState, named_step, states_of, waits_for
from storage.index.bounded import clip_line
from storage.models import utc
from tools.core.errors import InvalidArgumentsError
from tools.core.result import OmitNone, ToolModel
from tools.core.unicode_safety import revealed, visible_controls

ItemId = Annotated[str, Field(pattern=r"^[!-~]{1,64}$", coerce_numbers_to_str=True)]
"""Identifies an item in its list; many agents send numbers."""

_MARKS = {"completed": "x", "in_progress": ">", "failed": "!", "skipped": "-"}


def checklist_line(status: str, item_id: str, said: str) -> str:
    """Formats one line: `[x] 1. Write the tests`."""
    return f"[{_MARKS.get(status, ' ')}] {item_id}. {' '.join(said.split())}"


def check_distinct(parameter: str, ids: Iterable[str | None]) -> None:
    """Rejects duplicate IDs; missing ones are generated later."""
    given = [each for each in ids if each]
    if len(set(given)) < len(given):
        twice = sorted(each for each, times in Counter(given).items() if times > 1)
        raise InvalidArgumentsError(
            f"{parameter}: more than one has the id {', '.join(map(repr, twice))}.",
            next_actions=["Give each its own id, or leave the id of new ones out."],
        )


WHOLE = 20  # number of steps up to which all titles are shown
READY = 10  # limit on the ready steps shown of a longer plan
BEGUN = 20  # limit on the active and failed steps shown of a longer plan
GOAL_CHARACTERS = 80  # limit on a goal that is already known
NOTE_CHARACTERS = 100  # limit on a note unless details are requested
_NOTABLE: Mapping[StepState, int] = {"in_progress": BEGUN, "failed": BEGUN, "ready": READY}


class ShownStep(ToolModel):
    """A step of a plan.

    Attributes:
        id: Its ID in the plan.
        title: What to do.
        state: Its progress; a pending step is "ready", "waiting" for others, or "stopped" because
            one it waits for has failed.
        waits_for: The steps that must be over before it begins; absent if there are none.
        note: The latest note on its progress.
        detail: Its full description; absent unless requested.
    """

    id: str
    title: str
    state: StepState
    waits_for: OmitNone[list[str]] = None
    note: OmitNone[str] = None
    detail: OmitNone[str] = None

    def to_text(self) -> str:
        """Formats one line, with the detail and a longer note below."""
        waits = f"waits for {', '.join(self.waits_for)}" if self.waits_for else ""
        told = {"ready": "ready", "waiting": waits, "stopped": f"stopped, {waits}"}
        known = told.get(self.state, "")
        line = checklist_line(self.state, self.id, self.title) + (f" ({known})" if known else "")
        if self.detail is None:
            return line + (f" | {self.note}" if self.note else "")
        below = (self.detail, f"Note: {self.note}" if self.note else "")
        lines = [line, *"\n".join(filter(None, below)).splitlines()]
        return revealed(visible_controls("\n  ".join(lines)))


class PlanView(ToolModel):
    """A plan, or the requested part of it.

    Attributes:
        plan_id: Its ID for other tools.
        status: "open", "completed" or "abandoned".
        goal: Its goal.
        reasoning: Why these steps.
        message: The closing message.
        output: The result.
        counts: Number of steps by state.
        steps: The steps shown, in order.
        next_offset: Offset of the next page; absent on the last.
    """

    plan_id: str
    status: PlanStatus
    goal: str
    reasoning: OmitNone[str] = None
    message: OmitNone[str] = None
    output: OmitNone[str] = None
    counts: dict[str, int]
    steps: list[ShownStep]
    next_offset: OmitNone[int] = None

    @classmethod
    def folded(cls, plan: Plan) -> PlanView:
        """Shows the steps that are active, failed or ready."""
        states = states_of(plan.steps)
        return cls._of(plan, states, _show(plan, _notable(plan, states), states), is_whole=False)

    @classmethod
    def outlined(cls, plan: Plan) -> PlanView:
        """Shows all titles; of a long plan the steps that are active, failed or ready."""
        states = states_of(plan.steps)
        steps = plan.steps if len(plan.steps) <= WHOLE else _notable(plan, states)
        return cls._of(plan, states, _show(plan, steps, states))

    @classmethod
    def detailed(cls, plan: Plan, offset: int, characters: int) -> PlanView:
        """Shows full steps from an offset on, as many as fit but at least one."""
        states = states_of(plan.steps)
        view = cls._of(plan, states, ())
        view.next_offset = MOST_STEPS  # reserves room for the line that mentions it
        room = characters - len(view.to_text())
        view.next_offset = None
        for step in _show(plan, plan.steps[offset:], states, is_whole=True):
            room -= len(step.to_text()) + 1
            if room < 0 and view.steps:
                view.next_offset = offset + len(view.steps)
                break
            view.steps.append(step)
        return view

    @classmethod
    def of_step(cls, plan: Plan, step_id: str) -> PlanView:
        """Shows one step in full."""
        states = states_of(plan.steps)
        chosen = _show(plan, [named_step(plan.steps, step_id)], states, is_whole=True)
        return cls._of(plan, states, chosen, is_whole=False)

    @classmethod
    def _of(
        cls,
        plan: Plan,
        states: Mapping[str, StepState],
        steps: Iterable[ShownStep],
        *,
        is_whole: bool = True,
    ) -> PlanView:
        tally = Counter(states.values())
        return cls(
            plan_id=plan.id,
            status=plan.status,
            goal=plan.goal if is_whole else clip_line(plan.goal, GOAL_CHARACTERS),
            reasoning=(is_whole and plan.reasoning) or None,
            message=plan.message or None,
            output=plan.output or None,
            counts={state: tally[state] for state in get_args(StepState) if tally[state]},
            steps=list(steps),
        )

    def to_text(self) -> str:
        """Formats the goal, the counts, the steps, and advice if no step is active."""
        told = (("Why", self.reasoning), ("Closed", self.message), ("Output", self.output))
        total = sum(self.counts.values())
        counts = ", ".join(f"{many} {name.replace('_', ' ')}" for name, many in self.counts.items())
        lines = [
            f"Plan {self.plan_id}, {self.status}: {self.goal}",
            *(f"{name}: {text}" for name, text in told if text),
            f"{total} step{'' if total == 1 else 's'}" + (f": {counts}" if counts else ""),
            *(step.to_text() for step in self.steps),
            *self._advice(),
        ]
        return revealed(visible_controls("\n".join(lines)))

    def _advice(self) -> Iterator[str]:
        """Yields how to get the rest, or how to continue."""
        if self.next_offset is not None:
            yield f"[Go on with offset={self.next_offset}.]"
        if self.status != "open":
            return
        if not self.counts.keys() - {"completed", "skipped"}:
            yield "Every step is over: call `done`."
        elif "stopped" in self.counts:
            yield "Those that are stopped wait until what failed is retried, skipped or replanned."


class PlanLine(ToolModel):
    """One plan of a list.

    Attributes:
        plan_id: Its ID for other tools.
        goal: Its goal, shortened.
        status: "open", "completed" or "abandoned".
        over: Number of completed or skipped steps.
        total: Number of steps.
        updated: Time of the last change, UTC.
    """

    plan_id: str
    goal: str
    status: PlanStatus
    over: int
    total: int
    updated: str

    @classmethod
    def of(cls, plan: ListedPlan) -> PlanLine:
        """Converts a plan."""
        return cls(
            plan_id=plan.id,
            goal=clip_line(plan.goal, GOAL_CHARACTERS),
            status=plan.status,
            over=plan.over,
            total=plan.total,
            updated=utc(plan.update_time).isoformat(timespec="minutes")[:16],
        )

    def to_text(self) -> str:
        """Formats it as one line."""
        return f"{self.plan_id}, {self.to_line()}"

    def to_line(self) -> str:
        """Formats goal and progress, without the ID."""
        far = f"{self.over} of {self.total} steps over"
        return f"{self.status}: {self.goal} ({far}, {self.updated})"


def _notable(plan: Plan, states: Mapping[str, StepState]) -> list[Step]:
    """Returns the first steps that are active, failed or ready."""
    left = dict(_NOTABLE)
    chosen = []
    for step in plan.steps:
        state = states[step.id]
        if left.get(state):
            left[state] -= 1
            chosen.append(step)
    return chosen


def _show(
    plan: Plan, steps: Iterable[Step], states: Mapping[str, StepState], *, is_whole: bool = False
) -> Iterator[ShownStep]:
    by_id = {step.id: step for step in plan.steps}
    for step in steps:
        is_pending = step.status == "pending"
        waits = [each.id for each in waits_for(by_id, step)] if is_pending else []
        yield ShownStep(
            id=step.id,
            title=step.title,
            state=states[step.id],
            waits_for=waits or None,
            note=(step.note if is_whole else clip_line(step.note, NOTE_CHARACTERS)) or None,
            detail=step.detail if is_whole else None,
        )
