"""Runs recipes on Data-Juicer, confined, as a person approved them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from anyio.to_thread import run_sync
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import ApprovalRequiredError, ToolError, UnavailableError
from tools.core.spec import Confirmation, Effect, Prepared, Subject, SubjectKind, ToolScope, tool
from tools.data.answers.runs import RunReport
from tools.data.specs import Checked

if TYPE_CHECKING:  # a start runs none
    from tools.data.running.approval import PlannedRun
    from tools.data.running.readiness import ReadyRecipe

MOST_SECONDS = 21_600
"""How long a run may take."""

DryRun = Annotated[bool, Field(description="Try it on the first 1,000 rows, and write nothing")]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, description="It is ended then")]


async def _prepare(arguments: Mapping[str, Any], context: RequestContext) -> Prepared:
    """Adds the digest of what the call runs and replaces, and describes both for a person.

    The digest is empty, with which nothing runs, where the caller gave another one.
    """
    from tools.data.running.approval import PlannedRun

    given = {name: value for name, value in arguments.items() if value is not None}

    def describe() -> tuple[str, str]:
        path, dry_run = given["plan_path"], given["dry_run"]
        return PlannedRun.read(context.sandbox, path, dry_run=dry_run).describe(given)

    try:
        digest, shown = await run_sync(describe)
    except ToolError:  # the check says what is wrong, if the call may look at all
        digest, shown = "", ""
    return Prepared({**given, "digest": digest}, shown)


async def _check(arguments: Mapping[str, Any], context: RequestContext) -> None:
    """Refuses a run that could not begin, or would end without a result."""
    from tools.data.running.readiness import check_operators

    path = arguments["plan_path"]
    run, _ready = await _read(
        context, path, dry_run=arguments["dry_run"], digest=arguments["digest"]
    )
    recipe = run.plan.recipe
    found = await check_operators(context, recipe.process, recipe.system.executor_type)
    for lack in Checked.of(found).accepted(f"plan {path}"):
        raise UnavailableError(
            lack,
            next_actions=[
                "Leave the operator out.",
                "Ask the user to run `toolcrib data setup --full`.",
            ],
        )


async def _read(
    context: RequestContext, path: str, *, dry_run: bool, digest: str | None
) -> tuple[PlannedRun, ReadyRecipe]:
    """Reads a plan, which must be valid, have this digest, and be able to run here."""
    from tools.data.running.approval import PlannedRun
    from tools.data.running.workers import workers_of

    run = await run_sync(partial(PlannedRun.read, context.sandbox, path, dry_run=dry_run))
    ready = await run_sync(partial(run.check_ready, dry_run=dry_run, digest=digest))
    (await workers_of(context.machine)).check()
    return run, ready


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE, Effect.EXECUTE},
    destructive=True,  # files at the recipe's export_path are replaced
    confirmation=Confirmation.REQUIRED,
    confirm_if="confirm=true",
    tags=("data",),
    capabilities=("run a recipe on a data set", "clean, filter and deduplicate a data set"),
    timeout=MOST_SECONDS + 60,
    may_become_job=True,
    in_cell=True,
    subject=Subject(SubjectKind.PATH, "plan_path"),
    prepare=_prepare,
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
        bool, Field(description="Ask the user for the approval that the run requires")
    ] = False,
    digest: Annotated[
        str | None,
        Field(
            max_length=64,
            description="Of what is to run, as plan_save answers it; any other is refused",
        ),
    ] = None,
) -> RunReport:
    """Runs a recipe on its data set, and reports what each operator kept and dropped.

    Nothing is replaced before the run has succeeded; a long one that failed continues when it is
    called again. Try it with dry_run first.
    """
    from tools.data.running.cleaning import renew_report
    from tools.data.running.runs import run_recipe

    run, ready = await _read(context, plan_path, dry_run=dry_run, digest=digest)
    reasons = list(run.reasons())
    if reasons and not (confirm or dry_run):
        raise ApprovalRequiredError(
            f"{plan_path} requires that a person approves it before it runs: {'; '.join(reasons)}.",
            next_actions=[
                "Call it with dry_run=true, and show the user what would come of it.",
                "Then call it with confirm=true: the user is asked.",
            ],
        )
    check = partial(run.check_copied, digest)
    report = await run_recipe(ready, context, seconds=timeout_seconds, check=check)
    if not dry_run:
        await run_sync(renew_report, context.sandbox, plan_path, run.plan, report, run.outputs)
    return report
