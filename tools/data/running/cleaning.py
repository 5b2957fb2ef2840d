"""Cleaning by default: a recipe for what was seen, run, with its recipe and report beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import Literal

import anyio.to_thread

from tools.core.calling.words import Action
from tools.core.context import RequestContext
from tools.core.errors import ConflictError, InvalidArgumentsError, NotFoundError
from tools.data.answers.runs import CleanedDataset, RunReport, WrittenFile
from tools.data.checks.rows import is_directory
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, Step, SystemSpec
from tools.data.running.defaults import KEEP_ALL, cleaning_steps, deduplicating_steps
from tools.data.running.looking import TEXTS, Seen, look_at
from tools.data.running.readiness import check_ready
from tools.data.running.reports import to_json, to_markdown, to_svg
from tools.data.running.runs import run_recipe
from tools.data.running.staging import files_of
from tools.data.worker.entries import SKIPS_ROWS
from tools.sandbox.files.sandbox import Sandbox

Work = Literal["clean", "dedupe", "dedupe_near"]
"""What is done: mending texts and dropping rows without any, and dropping repeated rows."""

WORK: tuple[Work, ...] = ("clean", "dedupe")

SAMPLED = 200
"""Rows that the recipe is made for."""

_PIECE = 1 << 20


async def clean(  # each is one choice of the caller
    context: RequestContext,
    source: str,
    work: Sequence[Work],
    *,
    output: str,
    text_key: str | None,
    keep_stats: bool,
    overwrite: bool,
    dry_run: bool,
    seconds: float,
) -> CleanedDataset:
    """Makes a recipe for a data set, runs it, and writes both down with a report.

    Args:
        context: Whose call it is, of the scope system.
        source: The data set.
        work: What is done; nothing means to write it in another form.
        output: The file that is written.
        text_key: The field with the texts; None for that with the longest.
        keep_stats: Whether what filters computed is written too.
        overwrite: Whether files that are there are replaced.
        dry_run: Whether only the first rows are read, and nothing is written.
        seconds: How long it may take.

    Raises:
        ToolError: As `look_at`, `check_ready` and `run_recipe`; ConflictError where something is
            there.
    """
    seen = await look_at(context, source, SAMPLED)
    if seen.broken and (seen.form == "json" or not seen.rows):
        raise InvalidArgumentsError(
            f"{source} cannot be read: {seen.broken[0]}.", next_actions=["Mend it there."]
        )
    if not seen.rows:
        raise InvalidArgumentsError(
            f"{source} has no rows ({seen.size} bytes).", next_actions=["Give a file with some."]
        )
    key = text_key or seen.text_key
    if key is None:
        raise InvalidArgumentsError(
            f"No field of {source} holds texts.",
            next_actions=[
                Action("Look at it with {}, and give the {}.", "inspect_dataset", "text_key")
            ],
        )
    plan = _plan(source, work, output, key, seen, keep_stats=keep_stats)
    beside = Beside(output)
    if not (dry_run or overwrite):
        await anyio.to_thread.run_sync(check_free, context.sandbox, [output, *beside.all])
    check = partial(check_ready, plan.recipe, context.sandbox, dry_run=dry_run)
    ready = await anyio.to_thread.run_sync(check)
    report = await run_recipe(ready, context, seconds=seconds, overwrite=overwrite)
    extra = {"recipe": plan.to_yaml(), "recipe_path": None, "report_path": None}
    if not dry_run:
        tell = partial(_write_beside, context.sandbox, source, beside, plan, report)
        await anyio.to_thread.run_sync(tell)
        extra |= {"recipe_path": beside.recipe, "report_path": beside.markdown}
    return CleanedDataset.model_validate({**report.model_dump(), **extra})


class Beside:
    """Where the recipe and the report of an output are."""

    def __init__(self, output: str) -> None:
        stem = str(PurePosixPath(output).with_suffix(""))
        self.recipe = f"{stem}.recipe.yaml"
        self.markdown = f"{stem}.report.md"
        self.json = f"{stem}.report.json"
        self.chart = f"{stem}.report.svg"

    @property
    def all(self) -> tuple[str, ...]:
        """All four."""
        return self.recipe, self.markdown, self.json, self.chart


def _plan(  # what a plan is made of
    source: str, work: Sequence[Work], output: str, key: str, seen: Seen, *, keep_stats: bool
) -> Plan:
    texts = [row[key] for row in seen.rows if isinstance(row.get(key), str)]
    steps: list[Step] = cleaning_steps(texts) if "clean" in work else []
    if "dedupe" in work or "dedupe_near" in work:
        steps += deduplicating_steps(near="dedupe_near" in work)
    recipe = Recipe(
        dataset=DatasetSpec(
            dataset_path=source,
            export_path=output,
            text_keys=[key],
            suffixes=list(TEXTS) if seen.form == "text" else None,  # what was looked at
            load_jsonl_lenient=True if seen.form == "jsonl" else None,
            load_dataset_kwargs=dict(SKIPS_ROWS) if seen.form in {"csv", "tsv"} else None,
            keep_stats_in_res_ds=keep_stats or None,
        ),
        process=ProcessSpec(operators=steps or [KEEP_ALL]),
        system=SystemSpec.model_validate({"skip_op_error": False}),
    )
    what = ", then ".join(work) or "write in another form"
    return Plan(user_intent=f"{what}: {source}", recipe=recipe, approval_required=False)


def check_free(sandbox: Sandbox, paths: Sequence[str]) -> None:
    """Goes on where none of these paths is a file; blocks.

    Raises:
        ConflictError: If one is.
    """
    for path in paths:
        with suppress(NotFoundError):
            sandbox.read(path, max_bytes=0)
            raise ConflictError(
                f"{path} is there already.",
                next_actions=[
                    Action("Give {} to replace it.", "overwrite=true"),
                    Action("Or give another {}.", "output_path"),
                ],
            )


def renew_report(sandbox: Sandbox, plan_path: str, plan: Plan, report: RunReport) -> None:
    """Writes the report anew that lies beside a recipe which is run again; blocks.

    Args:
        sandbox: The files.
        plan_path: Where the recipe is; one that `clean` has not written has no report.
        plan: The recipe.
        report: What came of the run.

    Raises:
        ToolError: As the methods of Sandbox.
    """
    dataset = plan.recipe.dataset
    beside = Beside(dataset.export_path)
    if sandbox.relative(plan_path) != sandbox.relative(beside.recipe) or len(dataset.paths) != 1:
        return
    with suppress(NotFoundError):
        sandbox.read(beside.markdown, max_bytes=0)
        _write_report(sandbox, dataset.paths[0], beside, report)


def _write_beside(
    sandbox: Sandbox, source: str, beside: Beside, plan: Plan, report: RunReport
) -> None:
    sandbox.write(beside.recipe, plan.to_yaml().encode())
    _write_report(sandbox, source, beside, report)


def _write_report(sandbox: Sandbox, source: str, beside: Beside, report: RunReport) -> None:
    read = digest_of(sandbox, source)
    chart = PurePosixPath(beside.chart).name
    recipe = PurePosixPath(beside.recipe).name
    sandbox.write(beside.markdown, to_markdown(report, read, recipe, chart))
    sandbox.write(beside.json, to_json(report, read, recipe))
    sandbox.write(beside.chart, to_svg(report))


def digest_of(sandbox: Sandbox, source: str) -> WrittenFile:
    """What was read: a file's own digest; of a folder that of its files in their order; blocks.

    Raises:
        ToolError: As the methods of Sandbox.
    """
    is_folder = is_directory(sandbox, source)
    paths = sorted(each.path for each in files_of(sandbox, source)) if is_folder else [source]
    digest, size = hashlib.sha256(), 0
    for path in paths:
        with sandbox.open_read(path) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                size += len(piece)
    return WrittenFile(path=source, size=size, sha256=digest.hexdigest())
