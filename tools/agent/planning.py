"""Plans: a goal and its steps, what may begin, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Required

from pydantic import AliasChoices, ConfigDict, Field
from typing_extensions import TypedDict

from storage.agent.plans import PlanStatus
from storage.agent.steps import MOST_STEPS, Step, StepStatus, moved, replanned
from storage.models import ContextType, NewContext
from tools.answers.checklists import ItemId, check_distinct, shortened
from tools.answers.params import Content
from tools.answers.plans import PlanLine, PlanView
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Alias, Effect, ToolScope, tool

if TYPE_CHECKING:  # loaded on first use
    from storage.agent.plans import Plan

OTHERS = 10
"""Open plans that are listed where the session has none."""

TITLE_CHARACTERS = 80
"""Of the event that a closed plan becomes."""

EVENT_CHARACTERS = 2_000
"""Of its steps in that event."""

_Title = Annotated[str, Field(max_length=200, pattern=r"\S")]
_Detail = Annotated[str, Field(max_length=4_000)]
_Text = Annotated[str, Field(max_length=2_000, pattern=r"\S")]
_Blockers = Annotated[list[ItemId], Field(max_length=100)]
_PlanId = Annotated[
    str, Field(max_length=64, description="Default: the newest open plan of this session")
]


class ChangedStep(TypedDict, total=False):  # a thousand are read for a call: models take longer
    """A step as it is to be; what is left out stays.

    Attributes:
        id: What tells it from the others; a number where it is left out.
        title: What is done in it.
        detail: What else is to be known for it.
        blocked_by: The steps that have to be over before it begins.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # pydantic's own way

    id: Annotated[ItemId, Field(description="A number if left out")]
    title: Annotated[_Title, Field(description="What is done, in a line")]
    detail: Annotated[_Detail, Field(description="What else to know for it")]
    blocked_by: Annotated[
        _Blockers,
        Field(
            validation_alias=AliasChoices("blocked_by", "blockedBy", "depends_on", "dependencies"),
            description="Ids of the steps that must be over before",
        ),
    ]


class NewStep(ChangedStep):
    """A step of a new plan."""

    title: Required[Annotated[_Title, Field(description="What is done, in a line")]]  # type: ignore[misc]  # it cannot be left out


class FoundPlan(ToolModel):
    """A plan, or those that there are.

    Attributes:
        plan: The plan; absent where the session has none.
        others: The open plans of other sessions; absent where it has one.
    """

    plan: OmitNone[PlanView] = None
    others: OmitNone[list[PlanLine]] = None

    def to_text(self) -> str:
        """The plan, or the list."""
        if self.plan is not None:
            return self.plan.to_text()
        if not self.others:
            return "No plan is open; `create_plan` makes one."
        head = "This session has no open plan. Open in other sessions, to go on with by plan_id:"
        return "\n".join([head, *(each.to_text() for each in self.others)])


class Closed(ToolModel):
    """What was recorded as done.

    Attributes:
        plan_id: The plan that was closed; absent where it was a task without one.
        status: "completed", or "abandoned" where steps were left open.
        event_id: The event that tells of it; absent where nothing was said of a task.
    """

    plan_id: OmitNone[str] = None
    status: PlanStatus
    event_id: OmitNone[str] = None

    def to_text(self) -> str:
        """One line."""
        what = f"Plan {self.plan_id} is {self.status}." if self.plan_id else "The task is done."
        return what + (f" Kept as event {self.event_id}." if self.event_id else "")


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    tags=("agent", "plans"),
    capabilities=("plan the steps of a larger task, with what depends on what",),
)
def create_plan(
    context: RequestContext,
    goal: Annotated[_Text, Field(description="What it is for, and when it is reached")],
    steps: Annotated[
        list[NewStep], Field(min_length=1, max_length=MOST_STEPS, description="In their order")
    ],
    reasoning: Annotated[_Text | None, Field(description="Why these steps")] = None,
) -> PlanView:
    """Makes a plan of steps {title, id?, blocked_by?} that outlives a session; see update_plan."""
    check_distinct("steps", (each.get("id") for each in steps))
    plan = context.shelf().plans.create(context.session_id, goal, steps, reasoning or "")
    return PlanView.folded(plan)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    tags=("agent", "plans"),
    capabilities=("say how a step of a plan goes", "change the steps of a plan"),
)
def update_plan(
    context: RequestContext,
    step: Annotated[
        ItemId | None, Field(description="Whose status or note it is"), Alias("step_id", "id")
    ] = None,
    status: Annotated[StepStatus | None, Field(description="How far that step is")] = None,
    note: Annotated[_Text | None, Field(description="How it goes, or why it failed")] = None,
    steps: Annotated[
        list[ChangedStep] | None,
        Field(max_length=MOST_STEPS, description="Steps to add, or to change by their id"),
    ] = None,
    remove: Annotated[
        list[ItemId] | None, Field(max_length=MOST_STEPS, description="Steps to take out")
    ] = None,
    plan_id: _PlanId = "",
) -> PlanView:
    """Says how a step goes, or replans those that are not over; answers with what may begin now."""
    check_distinct("steps", (each.get("id") for each in steps or ()))
    if step is None and (status or note):
        raise InvalidArgumentsError(
            "status and note are those of a step.", next_actions=["Say which one by step."]
        )
    if not (status or note or steps or remove):
        raise InvalidArgumentsError(
            "This changes nothing.",
            next_actions=["Give step with status or note, or steps, or remove."],
        )

    def change(planned: Sequence[Step]) -> Sequence[Step]:
        if steps or remove:
            planned = replanned(planned, steps or (), remove or ())
        return moved(planned, step, status, note, context.session_id) if step else planned

    return PlanView.folded(context.shelf().plans.change(context.session_id, plan_id, change))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("agent", "plans"),
    capabilities=("see how far a plan is and what may begin", "find an open plan to go on with"),
)
def get_plan(
    context: RequestContext,
    plan_id: _PlanId = "",
    step: Annotated[ItemId | None, Field(description="This one alone, with everything")] = None,
    detail: Annotated[bool, Field(description="Every step with everything, in pages")] = False,
    offset: Annotated[int, Field(ge=0, le=MOST_STEPS, description="Steps to leave out")] = 0,
) -> FoundPlan:
    """Shows a plan: titles, of a long one those that go on, failed or may begin."""
    plans = context.shelf().plans
    if not plan_id and not plans.has_open(context.session_id):
        return FoundPlan(others=[PlanLine.of(each) for each in plans.listed(OTHERS)])
    plan = plans.get(context.session_id, plan_id)
    if step is not None:
        return FoundPlan(plan=PlanView.of_step(plan, step))
    if detail:
        return FoundPlan(plan=PlanView.detailed(plan, offset, context.text_budget))
    return FoundPlan(plan=PlanView.outlined(plan))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    tags=("agent", "plans"),
    capabilities=("close a plan", "record that a task is done and what came of it"),
)
def done(
    context: RequestContext,
    message: Annotated[_Text | None, Field(description="How it went")] = None,
    output: Annotated[Content | None, Field(description="What came of it")] = None,
    abandon: Annotated[bool, Field(description="Close a plan whose steps are not over")] = False,
    plan_id: _PlanId = "",
) -> Closed:
    """Closes the plan, or without one records the task as done; query finds it later."""
    said, came = message or "", output or ""
    shelf, session = context.shelf(), context.session_id
    if not plan_id and not shelf.plans.has_open(session):
        new = _event(f"Done: {said or came}", said, came)
        event_id = shelf.add(new).context.id if said or came else None
        return Closed(status="completed", event_id=event_id)
    plan, event_id = shelf.plans.close(session, plan_id, said, came, tell=_told, abandon=abandon)
    return Closed(plan_id=plan.id, status=plan.status, event_id=event_id)


def _told(plan: Plan) -> NewContext:
    """A closed plan as an event."""
    title = f"{plan.status.capitalize()}: {plan.goal}"
    new = _event(title, plan.goal, plan.message, plan.output, _steps_told(plan))
    return replace(new, raw_type="plan", raw_id=plan.id)


def _event(title: str, *parts: str) -> NewContext:
    """What was done, as an event."""
    return NewContext(
        context_type=ContextType.EVENT,
        title=shortened(title, TITLE_CHARACTERS),
        text="\n\n".join(filter(None, parts)),
    )


def _steps_told(plan: Plan) -> str:
    """The steps as lines, as many as an event has room for."""
    lines, room = [], EVENT_CHARACTERS
    for each in plan.steps:
        line = f"- {each.title} ({each.status.replace('_', ' ')})"
        line += f": {each.note}" if each.note else ""
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)
