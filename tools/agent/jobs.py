"""Tasks: follows and cancels calls that continue in the background."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tools.answers.task_reports import LONGEST_WAIT, TaskReport
from tools.core.context import RequestContext
from tools.core.spec import Alias, Effect, ToolScope, tool

TaskId = Annotated[
    str, Field(pattern="^[!-~]{1,64}$", description="As the call was answered"), Alias("id")
]


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("agent", "tasks"),
    capabilities=("wait for a call that takes long", "get the result of a task"),
)
async def get_task(
    context: RequestContext,
    task_id: TaskId,
    wait_seconds: Annotated[
        float, Field(ge=0, le=LONGEST_WAIT, description="How long to wait for its end; 0 looks")
    ] = 30,
) -> TaskReport:
    """Waits for a call that continues as a task, and returns its result or its progress.

    Results are kept for a day.
    """
    async with context.aside():
        record = await context.jobs.follow(
            context.identity,
            task_id,
            seconds=wait_seconds,
            report=context.report_progress,
            relay=context.link.relay,
        )
    return TaskReport.of(record)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.EXECUTE},  # of one that writes it would wait for the very task
    idempotent=True,
    tags=("agent", "tasks"),
    capabilities=("cancel a task", "stop a call that takes long"),
)
async def cancel_task(context: RequestContext, task_id: TaskId) -> TaskReport:
    """Cancels a call that continues as a task, and everything it started."""
    return TaskReport.of(await context.jobs.cancel(context.identity, task_id))
