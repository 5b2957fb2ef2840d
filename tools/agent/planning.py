"""Plans: goals with steps, which steps can start, and progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Required

from pydantic import AliasChoices, ConfigDict, Field
from typing_extensions import TypedDict

from storage.agent.plans import PlanStatus
from storage.agent.steps import MOST_STEPS, Step, StepStatus, moved, replanned
from storage.index.bounded import clip_line
from storage.models import ContextType, NewContext
from tools.answers.params import Content
from tools.answers.plans import ItemId, PlanLine, PlanView, check_distinct
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Alias, Effect, ToolScope, tool

if TYPE_CHECKING:  # loaded on first use
    from storage.agent.plans import Plan

OTHERS = 10  # number of open plans listed if the session has none
TITLE_CHARACTERS = 80  # limit on the title of the event for a closed plan
EVENT_CHARACTERS = 2_000  # limit on the steps in that event
_Title = Annotated[str, Field(max_length=200, pattern=r"\S")]
_Detail = Annotated[str, Field(max_length=4_000)]
_Text = Annotated[str, Field(max_length=2_000, pattern=r"\S")]
_Blockers = Annotated[list[ItemId], Field(max_length=100)]
_PlanId = Annotated[
    str, Field(max_length=64, description="Default: the newest open plan of this session")
]


class ChangedStep(TypedDict, total=False):  # a call may have 1,000: models would be slower
    """Changes to a step; omitted fields stay as they are.

    Attributes:
        id: Its ID; a number if omitted.
        title: What to do.
        detail: Further information for it.
        blocked_by: The steps that must be over before it begins.
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
    """A plan, or the open plans.

    Attributes:
        plan: The plan; absent if the session has none.
        others: The open plans of other sessions; absent if this session has one.
    """

    plan: OmitNone[PlanView] = None
    others: OmitNone[list[PlanLine]] = None

    def to_text(self) -> str:
        """Formats the plan or the list."""
        if self.plan is not None:
            return self.plan.to_text()
        if not self.others:
            return "No plan is open; `create_plan` makes one."
        head = "This session has no open plan. Open in other sessions (continue with plan_id):"
        return "\n".join([head, *(each.to_text() for each in self.others)])


class Closed(ToolModel):
    """A closed plan or task.

    Attributes:
        plan_id: The closed plan; absent for a task without a plan.
        status: "completed", or "abandoned" if steps were left open.
        event_id: The event that records it; absent if a task had nothing to record.
    """

    plan_id: OmitNone[str] = None
    status: PlanStatus
    event_id: OmitNone[str] = None

    def to_text(self) -> str:
        """Formats it as one line."""
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
    """Updates the status of a step, or replans the rest; returns the steps that can start now."""
    check_distinct("steps", (each.get("id") for each in steps or ()))
    if step is None and (status or note):
        raise InvalidArgumentsError(
            "status and note need a step.", next_actions=["Pass its ID as step."]
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
    """Shows a plan; of a long one, only the steps that are active, failed or ready."""
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
    plan, event_id = shelf.plans.close(
        session, plan_id, said, came, tell=_plan_event, abandon=abandon
    )
    return Closed(plan_id=plan.id, status=plan.status, event_id=event_id)


def _plan_event(plan: Plan) -> NewContext:
    title = f"{plan.status.capitalize()}: {plan.goal}"
    new = _event(title, plan.goal, plan.message, plan.output, _format_steps(plan))
    return replace(new, raw_type="plan", raw_id=plan.id)


def _event(title: str, *parts: str) -> NewContext:
    return NewContext(
        context_type=ContextType.EVENT,
        title=clip_line(title, TITLE_CHARACTERS),
        text="\n\n".join(filter(None, parts)),
    )


def _format_steps(plan: Plan) -> str:
    """Formats as many steps as fit in an event."""
    lines, room = [], EVENT_CHARACTERS
    for each in plan.steps:
        line = f"- {each.title} ({each.status.replace('_', ' ')})"
        line += f": {each.note}" if each.note else ""
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)
