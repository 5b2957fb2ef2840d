"""Recipes are run: on Data-Juicer, confined, with what came of each operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import ApprovalRequiredError
from tools.core.spec import Confirmation, Effect, Subject, SubjectKind, ToolScope, tool
from tools.data.answers.runs import RunReport
from tools.data.recipe import Plan
from tools.sandbox.files.sandbox import Sandbox

if TYPE_CHECKING:  # a start runs none
    from tools.data.running.readiness import ReadyRecipe

__all__ = ["MOST_SECONDS", "DryRun", "Seconds", "apply_recipe"]

MOST_SECONDS = 21_600
"""How long a run may take."""

PLAN_BYTES = 1_000_000

DryRun = Annotated[bool, Field(description="Try it on the first 1,000 rows, and write nothing")]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, description="It is ended then")]


async def _check(arguments: Mapping[str, Any], context: RequestContext) -> None:
    """Refuses a run that could not begin, or would end without a result."""
    await _ready(context, arguments["plan_path"], dry_run=arguments["dry_run"])


async def _ready(context: RequestContext, path: str, *, dry_run: bool) -> tuple[Plan, ReadyRecipe]:
    """The plan, where it is valid and can run here, and its recipe."""
    from tools.data.running.workers import workers_of

    valid = await anyio.to_thread.run_sync(partial(_valid, context.sandbox, path, dry_run=dry_run))
    (await workers_of(context.machine)).check()
    return valid


def _valid(sandbox: Sandbox, path: str, *, dry_run: bool) -> tuple[Plan, ReadyRecipe]:
    from tools.data.catalogue.bundle import bundled
    from tools.data.checks.recipe import check_recipe
    from tools.data.running.readiness import check_ready

    read = sandbox.read(path, max_bytes=PLAN_BYTES)
    plan = Plan.from_yaml(read.data.decode("utf-8", "replace"))
    ready = check_ready(plan.recipe, sandbox, dry_run=dry_run)
    check_recipe(plan.recipe, bundled(), sandbox).refuse(f"The plan {path}")
    return plan, ready


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE, Effect.EXECUTE},
    destructive=True,  # what is at the recipe's export_path is replaced
    confirmation=Confirmation.REQUIRED,
    confirm_if="confirm=true",
    tags=("data",),
    capabilities=("run a recipe on a data set", "clean, filter and deduplicate a data set"),
    timeout=MOST_SECONDS + 60,
    becomes_job=True,
    in_cell=True,
    subject=Subject(SubjectKind.PATH, "plan_path"),
    check=_check,
)
async def apply_recipe(
    context: RequestContext,
    plan_path: Annotated[
        str, Field(min_length=1, max_length=4_096, description="A plan that plan_save wrote")
    ],
    dry_run: DryRun = False,
    timeout_seconds: Seconds = 3_600,
    confirm: Annotated[
        bool, Field(description="Ask the user for the approval that the plan requires")
    ] = False,
) -> RunReport:
    """Runs a recipe on its data set, and tells what each operator kept and dropped.

    Nothing is replaced before the run has succeeded; a long one that did not goes on when it is
    called again. Try it with dry_run first.
    """
    from tools.data.running.cleaning import renew_report
    from tools.data.running.runs import run_recipe

    plan, ready = await _ready(context, plan_path, dry_run=dry_run)
    on_cluster = plan.recipe.on_cluster
    if (plan.approval_required or on_cluster) and not (confirm or dry_run):
        why = "runs on a cluster, where nothing confines it" if on_cluster else "says so"
        raise ApprovalRequiredError(
            f"{plan_path} requires that a person approves it before it runs: it {why}.",
            next_actions=[
                "Call it with dry_run=true, and show the user what would come of it.",
                "Then call it with confirm=true: the user is asked.",
            ],
        )
    report = await run_recipe(ready, context, seconds=timeout_seconds)
    if not dry_run:
        await anyio.to_thread.run_sync(renew_report, context.sandbox, plan_path, plan, report)
    return report
