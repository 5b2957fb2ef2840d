"""Runs recipes on Data-Juicer, confined, as a person approved them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import ApprovalRequiredError, ConflictError, ToolError, UnavailableError
from tools.core.spec import Confirmation, Effect, Prepared, Subject, SubjectKind, ToolScope, tool
from tools.data.answers.runs import RunReport
from tools.data.answers.specs import Checked
from tools.data.catalogue.operator import file_parameters
from tools.data.recipe import Plan, ProcessSpec
from tools.sandbox.files.sandbox import Sandbox

if TYPE_CHECKING:  # a start runs none
    from tools.data.running.outputs import Outputs
    from tools.data.running.readiness import ReadyRecipe

MOST_SECONDS = 21_600
"""How long a run may take."""

PLAN_BYTES = 1_000_000

WITH_CODE = frozenset({"python_lambda_mapper", "python_file_mapper"})
"""Operators of the release that run code which the recipe gives them."""

DryRun = Annotated[bool, Field(description="Try it on the first 1,000 rows, and write nothing")]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, description="It is ended then")]


async def _prepare(arguments: Mapping[str, Any], context: RequestContext) -> Prepared:
    """Adds the digest of what the call runs and replaces, and describes both for a person.

    The digest is empty, with which nothing runs, where the caller gave another one.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        digest, shown = await anyio.to_thread.run_sync(_describe, context.sandbox, given)
    except ToolError:  # the check says what is wrong, if the call may look at all
        digest, shown = "", ""
    return Prepared({**given, "digest": digest}, shown)


def _describe(sandbox: Sandbox, given: Mapping[str, Any]) -> tuple[str, str]:
    from tools.data.running.outputs import Outputs, describe_data

    path, dry_run = given["plan_path"], given["dry_run"]
    plan, content = _read(sandbox, path)
    dataset, process = plan.recipe.dataset, plan.recipe.process
    outputs = _outputs(sandbox, path, plan, dry_run=dry_run)
    code = [_files(sandbox, each) for each in _read_paths(process)]
    digest = _digest(content, code, outputs)
    if given.get("digest", digest) not in {digest, _digest(content, code, Outputs())}:
        digest = ""
    local = dataset.local_paths
    remote = [each for each in dataset.paths if each not in local]
    lines = [
        *(f"{name}: {_shown(value)}" for name, value in given.items() if name != "digest"),
        f"for: {plan.user_intent}",
        *(f"reads: {_shown(describe_data(sandbox, each))}" for each in local),
        *(f"reads: {_shown(f'{each} (remote, rows unknown)')}" for each in remote),
        f"writes: {_shown(dataset.export_path)}",
        *outputs.describe(sandbox),
        *(f"runs code of: {_shown(each)}" for each in process.custom_operator_paths or ()),
        f"operators ({plan.recipe.system.executor_type}):",
        *(f"    {each.name} {_shown(each.params)}" for each in process.operators),
        f"digest: {digest or 'not the one that was given; nothing will run'}",
    ]
    return digest, "\n".join(lines)


_shown = partial(json.dumps, ensure_ascii=False, default=str)


def _read(sandbox: Sandbox, path: str) -> tuple[Plan, bytes]:
    content = sandbox.read(path, max_bytes=PLAN_BYTES).data
    return Plan.from_yaml(content.decode("utf-8", "replace")), content


def _outputs(sandbox: Sandbox, path: str, plan: Plan, *, dry_run: bool) -> Outputs:
    from tools.data.running.cleaning import report_of
    from tools.data.running.outputs import Outputs, find_outputs, recipe_outputs

    if dry_run:
        return Outputs()
    report = report_of(sandbox, path, plan)
    found = recipe_outputs(plan.recipe, sandbox)
    return find_outputs(sandbox, [*found, *([report] if report else [])])


def _digest(content: bytes, code: Sequence[Mapping[str, str]], outputs: Outputs) -> str:
    """Tells a run from others: by its plan, the code that it names, and what it replaces."""
    digest = hashlib.sha256(content)
    for at, files in enumerate(code):
        for name, each in sorted(files.items()):
            digest.update(f"\0{at}/{name}\0{each}".encode(errors="surrogateescape"))
    digest.update(outputs.digest())
    return digest.hexdigest()


def _read_paths(process: ProcessSpec) -> list[str]:
    """Returns the code and the other files, besides the data, that operators read."""
    return [
        *(process.custom_operator_paths or ()),
        *(
            step.params[key]
            for step in process.operators
            for key in file_parameters(step.name, step.params)
        ),
    ]


def _files(sandbox: Sandbox, path: str) -> dict[str, str]:
    """Returns the digest of each file in a folder, by its path in there; or of one file."""
    from tools.data.running.outputs import digest_of, files_in

    top = sandbox.relative(path)
    return {
        each.removeprefix(top).removeprefix("/"): digest_of(sandbox, each).sha256
        for each in map(sandbox.relative, files_in(sandbox, path))
    }


def _check_copied(
    path: str, content: bytes, digest: str | None, outputs: Outputs, config: Mapping[str, Any]
) -> None:
    """Refuses to run code, as it was copied in, that is not what was approved."""
    steps = [(name, given or {}) for step in config["process"] for name, given in step.items()]
    read = [given[key] for name, given in steps for key in file_parameters(name, given)]
    copied = map(Path, [*config.get("custom_operator_paths", ()), *read])
    code = [_files(Sandbox(each.parent), each.name) for each in copied]
    _check_digest(path, digest, _digest(content, code, outputs))


def _check_digest(path: str, given: str | None, actual: str) -> None:
    if given != actual:
        raise ConflictError(
            f"{path}, code that it names or a file that it replaces has changed since the call was"
            " judged, or has another digest than was given; nothing was run.",
            next_actions=["Look at what changed, and call it again without digest."],
        )


async def _check(arguments: Mapping[str, Any], context: RequestContext) -> None:
    """Refuses a run that could not begin, or would end without a result."""
    from tools.data.running.trying import check_operators

    given = {name: arguments[name] for name in ("plan_path", "dry_run", "digest")}
    plan, _ready_recipe, _content = await _ready(context, **given)
    executor = plan.recipe.system.executor_type
    found = await check_operators(context, plan.recipe.process, executor)
    for lack in Checked.of(found).accepted(f"plan {given['plan_path']}"):
        raise UnavailableError(
            lack,
            next_actions=[
                "Leave the operator out.",
                "Ask the user to run `toolcrib data setup --full`.",
            ],
        )


async def _ready(
    context: RequestContext, plan_path: str, *, dry_run: bool, digest: str | None
) -> tuple[Plan, ReadyRecipe, bytes]:
    """Returns the plan, its recipe and its content, if it is valid and can run here."""
    from tools.data.running.workers import workers_of

    check = partial(_check_plan, context.sandbox, plan_path, dry_run=dry_run, digest=digest)
    checked = await anyio.to_thread.run_sync(check)
    (await workers_of(context.machine)).check()
    return checked


def _check_plan(
    sandbox: Sandbox, path: str, *, dry_run: bool, digest: str | None
) -> tuple[Plan, ReadyRecipe, bytes]:
    from tools.data.catalogue.bundle import bundled
    from tools.data.checks.recipe import check_recipe
    from tools.data.running.readiness import check_ready

    plan, content = _read(sandbox, path)
    outputs = _outputs(sandbox, path, plan, dry_run=dry_run)
    ready = check_ready(plan.recipe, sandbox, dry_run=dry_run, outputs=outputs)
    Checked.of(check_recipe(plan.recipe, bundled(), sandbox)).accepted(f"plan {path}")
    code = [_files(sandbox, each) for each in _read_paths(plan.recipe.process)]
    _check_digest(path, digest, _digest(content, code, outputs))
    return plan, ready, content


def _reasons(plan: Plan, outputs: Outputs) -> Iterator[str]:
    """Says why a person must approve a run; what the plan says can add to that, not lift it."""
    if plan.recipe.on_cluster:
        yield "it runs on a cluster, where nothing confines it"
    if outputs.replaced:
        yield f"it replaces {', '.join(outputs.replaced)}"
    if _has_code(plan.recipe.process):
        yield "it runs code that the plan brings"
    if plan.approval_required:
        yield "it says so"


def _has_code(process: ProcessSpec) -> bool:
    return bool(process.custom_operator_paths) or any(
        each.name in WITH_CODE for each in process.operators
    )


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE, Effect.EXECUTE},
    destructive=True,  # files at the recipe's export_path are replaced
    confirmation=Confirmation.REQUIRED,
    confirm_if="confirm=true",
    tags=("data",),
    capabilities=("run a recipe on a data set", "clean, filter and deduplicate a data set"),
    timeout=MOST_SECONDS + 60,
    becomes_job=True,
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
    """Runs a recipe on its data set, and tells what each operator kept and dropped.

    Nothing is replaced before the run has succeeded; a long one that did not goes on when it is
    called again. Try it with dry_run first.
    """
    from tools.data.running.cleaning import renew_report
    from tools.data.running.runs import run_recipe

    plan, ready, content = await _ready(context, plan_path, dry_run=dry_run, digest=digest)
    reasons = list(_reasons(plan, ready.outputs))
    if reasons and not (confirm or dry_run):
        raise ApprovalRequiredError(
            f"{plan_path} requires that a person approves it before it runs: {'; '.join(reasons)}.",
            next_actions=[
                "Call it with dry_run=true, and show the user what would come of it.",
                "Then call it with confirm=true: the user is asked.",
            ],
        )
    check = partial(_check_copied, plan_path, content, digest, ready.outputs)
    report = await run_recipe(ready, context, seconds=timeout_seconds, check=check)
    if not dry_run:
        renew = partial(renew_report, context.sandbox, plan_path, plan, report, ready.outputs)
        await anyio.to_thread.run_sync(renew)
    return report
