"""Recipes are run: on Data-Juicer, confined, with what came of each operator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, cast

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import (
    ApprovalRequiredError,
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
    ToolError,
)
from tools.core.spec import Confirmation, Effect, Prepared, Subject, SubjectKind, ToolScope, tool
from tools.data.answers.runs import RunReport
from tools.data.recipe import Plan
from tools.sandbox.files.sandbox import Sandbox

if TYPE_CHECKING:  # a start runs none
    from io import FileIO

    from tools.data.running.readiness import ReadyRecipe

MOST_SECONDS = 21_600
"""How long a run may take."""

PLAN_BYTES = 1_000_000

DryRun = Annotated[bool, Field(description="Try it on the first 1,000 rows, and write nothing")]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, description="It is ended then")]


async def _prepared(arguments: Mapping[str, Any], context: RequestContext) -> Prepared:
    """The same call with the digest of what it runs, and what a person should know of that."""
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        digest, shown = await anyio.to_thread.run_sync(_described, context.sandbox, given)
    except ToolError:  # its check says what is wrong, if it may look at all
        return Prepared(given, "")
    return Prepared({"digest": digest, **given}, shown)


def _described(sandbox: Sandbox, given: Mapping[str, Any]) -> tuple[str, str]:
    content = sandbox.read(given["plan_path"], max_bytes=PLAN_BYTES).data
    plan = Plan.from_yaml(content.decode("utf-8", "replace"))
    dataset, process = plan.recipe.dataset, plan.recipe.process
    custom = process.custom_operator_paths or ()
    digest = _digest(content, map(partial(_files_in_root, sandbox), custom))
    replaces = ""
    with suppress(NotFoundError):
        try:
            sandbox.open_read(dataset.export_path).close()
        except InvalidArgumentsError:  # a directory
            replaces = ", which is there"
        else:
            replaces = ", which is replaced"
    lines = [
        *(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in given.items()),
        f"for: {plan.user_intent}",
        f"reads: {json.dumps(dataset.paths, ensure_ascii=False)}",
        f"writes: {json.dumps(dataset.export_path, ensure_ascii=False)}{replaces}",
        *(f"runs code of: {json.dumps(each, ensure_ascii=False)}" for each in custom),
        f"operators ({plan.recipe.system.executor_type}):",
        *(
            f"    {each.name} {json.dumps(each.params, ensure_ascii=False, default=str)}"
            for each in process.operators
        ),
        f"digest: {digest}",
    ]
    return digest, "\n".join(lines)


def _digest(content: bytes, custom: Iterable[Mapping[str, bytes]]) -> str:
    """Tells a plan from all others: by its content, and by that of the code that it names."""
    digest = hashlib.sha256(content)
    for at, files in enumerate(custom):
        for name, each in sorted(files.items()):
            digest.update(f"\0{at}/{name}\0".encode(errors="surrogateescape") + each)
    return digest.hexdigest()


def _files_in_root(sandbox: Sandbox, path: str) -> dict[str, bytes]:
    from tools.data.checks.rows import is_directory
    from tools.data.running.staging import files_of

    is_folder = is_directory(sandbox, path)
    top = PurePosixPath(sandbox.relative(path))
    found = {}
    for name in [each.path for each in files_of(sandbox, path)] if is_folder else [path]:
        with sandbox.open_read(name) as file:
            inner = str(PurePosixPath(name).relative_to(top)) if is_folder else ""
            found[inner] = hashlib.file_digest(cast("FileIO", file), "sha256").digest()
    return found


def _files_copied(path: str) -> dict[str, bytes]:
    top = Path(path)
    files = [each for each in top.rglob("*") if each.is_file()] if top.is_dir() else [top]
    return {
        each.relative_to(top).as_posix() if each != top else "": hashlib.sha256(
            each.read_bytes()
        ).digest()
        for each in files
    }


def _check_same(path: str, content: bytes, digest: str | None, config: Mapping[str, Any]) -> None:
    """Raises if what was copied in is not what the call was judged, and approved, with."""
    custom = config.get("custom_operator_paths", ())
    if _digest(content, map(_files_copied, custom)) != digest:
        raise ConflictError(
            f"{path}, or code that it names, has changed since the call was judged, or has"
            " another digest than was given; nothing was run.",
            next_actions=["Look at what changed, and call it again without digest."],
        )


async def _check(arguments: Mapping[str, Any], context: RequestContext) -> None:
    """Refuses a run that could not begin, or would end without a result."""
    await _ready(context, arguments["plan_path"], dry_run=arguments["dry_run"])


async def _ready(
    context: RequestContext, path: str, *, dry_run: bool
) -> tuple[Plan, ReadyRecipe, bytes]:
    """The plan, where it is valid and can run here, its recipe, and its content."""
    from tools.data.running.workers import workers_of

    valid = await anyio.to_thread.run_sync(partial(_valid, context.sandbox, path, dry_run=dry_run))
    (await workers_of(context.machine)).check()
    return valid


def _valid(sandbox: Sandbox, path: str, *, dry_run: bool) -> tuple[Plan, ReadyRecipe, bytes]:
    from tools.data.catalogue.bundle import bundled
    from tools.data.checks.recipe import check_recipe
    from tools.data.running.readiness import check_ready

    read = sandbox.read(path, max_bytes=PLAN_BYTES)
    plan = Plan.from_yaml(read.data.decode("utf-8", "replace"))
    ready = check_ready(plan.recipe, sandbox, dry_run=dry_run)
    check_recipe(plan.recipe, bundled(), sandbox).refuse(f"The plan {path}")
    return plan, ready, read.data


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
    prepare=_prepared,
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

    plan, ready, content = await _ready(context, plan_path, dry_run=dry_run)
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
    check = partial(_check_same, plan_path, content, digest)
    report = await run_recipe(ready, context, seconds=timeout_seconds, check=check)
    if not dry_run:
        await anyio.to_thread.run_sync(renew_report, context.sandbox, plan_path, plan, report)
    return report
