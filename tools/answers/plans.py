"""Plans as tools and resources answer them: titles before details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from storage.agent.plans import ListedPlan, Plan, PlanStatus
from storage.agent.steps import MOST_STEPS, Step, StepState, named_step, states_of, waits_for
from tools.answers.checklists import checklist_line, shortened
from tools.answers.dates import utc
from tools.core.invisible import revealed, visible_controls
from tools.core.result import OmitNone, ToolModel

WHOLE = 20
"""Steps of a plan whose titles are all shown."""

READY = 10
"""Ready steps that are shown of a longer one."""

BEGUN = 20
"""Steps in progress, or failed, that are shown of it."""

GOAL_CHARACTERS = 80
"""Of a goal where it is known already."""

NOTE_CHARACTERS = 100
"""Of a note where details are not asked for."""

_NOTABLE: Mapping[StepState, int] = {"in_progress": BEGUN, "failed": BEGUN, "ready": READY}


class ShownStep(ToolModel):
    """A step of a plan.

    Attributes:
        id: What tells it from the others of its plan.
        title: What is done in it.
        state: How far it is; a pending one is "ready", or is "waiting" for others, or is "stopped"
            because one that it waits for has failed.
        waits_for: The steps that have to be over before it begins; absent where there are none.
        note: What was said last of how it goes.
        detail: The rest that is to be known for it; absent where it was not asked for.
    """

    id: str
    title: str
    state: StepState
    waits_for: OmitNone[list[str]] = None
    note: OmitNone[str] = None
    detail: OmitNone[str] = None

    def to_text(self) -> str:
        """One line; the detail and a longer note beneath it."""
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
    """A plan, or as much of it as was asked for.

    Attributes:
        plan_id: What names it to other tools.
        status: "open", "completed" or "abandoned".
        goal: What it is for.
        reasoning: Why it is as it is.
        message: What was said of it when it was closed.
        output: What came of it.
        counts: How many steps there are of each state that any has.
        steps: Those that are shown, in their order.
        next_offset: Where the next page begins; absent on the last.
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
        """What goes on, has failed or may begin."""
        states = states_of(plan.steps)
        return cls._of(plan, states, _shown(plan, _notable(plan, states), states), is_whole=False)

    @classmethod
    def outlined(cls, plan: Plan) -> PlanView:
        """All titles; of a long plan what goes on, has failed or may begin."""
        states = states_of(plan.steps)
        steps = plan.steps if len(plan.steps) <= WHOLE else _notable(plan, states)
        return cls._of(plan, states, _shown(plan, steps, states))

    @classmethod
    def detailed(cls, plan: Plan, offset: int, characters: int) -> PlanView:
        """Everything, as many steps from an offset on as fit; one at least."""
        states = states_of(plan.steps)
        view = cls._of(plan, states, ())
        view.next_offset = MOST_STEPS  # the line that says it has room in any case
        room = characters - len(view.to_text())
        view.next_offset = None
        for step in _shown(plan, plan.steps[offset:], states, is_whole=True):
            room -= len(step.to_text()) + 1
            if room < 0 and view.steps:
                view.next_offset = offset + len(view.steps)
                break
            view.steps.append(step)
        return view

    @classmethod
    def of_step(cls, plan: Plan, step_id: str) -> PlanView:
        """One step with everything."""
        states = states_of(plan.steps)
        chosen = _shown(plan, [named_step(plan.steps, step_id)], states, is_whole=True)
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
            goal=plan.goal if is_whole else shortened(plan.goal, GOAL_CHARACTERS),
            reasoning=(is_whole and plan.reasoning) or None,
            message=plan.message or None,
            output=plan.output or None,
            counts={state: tally[state] for state in get_args(StepState) if tally[state]},
            steps=list(steps),
        )

    def to_text(self) -> str:
        """The goal, the counts, the steps, and what can be done where nothing goes on."""
        told = (("Why", self.reasoning), ("Closed", self.message), ("Output", self.output))
        lines = [
            f"Plan {self.plan_id}, {self.status}: {self.goal}",
            *(f"{name}: {text}" for name, text in told if text),
            self._counted(),
            *(step.to_text() for step in self.steps),
            *self._advice(),
        ]
        return revealed(visible_controls("\n".join(lines)))

    def _counted(self) -> str:
        total = sum(self.counts.values())
        told = ", ".join(f"{many} {state.replace('_', ' ')}" for state, many in self.counts.items())
        return f"{total} step{'' if total == 1 else 's'}" + (f": {told}" if told else "")

    def _advice(self) -> Iterator[str]:
        """What to call for the rest, or to go on."""
        if self.next_offset is not None:
            yield f"[Go on with offset={self.next_offset}.]"
        if self.status != "open":
            return
        if not self.counts.keys() - {"completed", "skipped"}:
            yield "Every step is over: call `done`."
        elif "stopped" in self.counts:
            yield "Those that are stopped wait until what failed is retried, skipped or replanned."


class PlanLine(ToolModel):
    """A plan in a list.

    Attributes:
        plan_id: What names it to other tools.
        goal: What it is for, cut where it is long.
        status: "open", "completed" or "abandoned".
        over: How many of its steps are completed or skipped.
        total: How many it has.
        updated: When it was changed last, UTC.
    """

    plan_id: str
    goal: str
    status: PlanStatus
    over: int
    total: int
    updated: str

    @classmethod
    def of(cls, plan: ListedPlan) -> PlanLine:
        """A plan as a line of a list."""
        return cls(
            plan_id=plan.id,
            goal=shortened(plan.goal, GOAL_CHARACTERS),
            status=plan.status,
            over=plan.over,
            total=plan.total,
            updated=utc(plan.update_time).isoformat(timespec="minutes")[:16],
        )

    def to_text(self) -> str:
        """One line."""
        return f"{self.plan_id}, {self.told()}"

    def told(self) -> str:
        """What it is for and how far it is, without its id."""
        far = f"{self.over} of {self.total} steps over"
        return f"{self.status}: {self.goal} ({far}, {self.updated})"


def _notable(plan: Plan, states: Mapping[str, StepState]) -> list[Step]:
    """The first that are in progress, have failed or are ready."""
    left = dict(_NOTABLE)
    chosen = []
    for step in plan.steps:
        state = states[step.id]
        if left.get(state):
            left[state] -= 1
            chosen.append(step)
    return chosen


def _shown(
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
            note=(step.note if is_whole else shortened(step.note, NOTE_CHARACTERS)) or None,
            detail=step.detail if is_whole else None,
        )
