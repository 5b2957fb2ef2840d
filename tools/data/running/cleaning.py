"""Cleans a data set by a recipe for what was seen of it, and keeps that recipe and a report."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal

import anyio.to_thread

from tools.core.calling.words import Action
from tools.core.context import RequestContext
from tools.core.errors import ConflictError, InvalidArgumentsError, NotFoundError
from tools.data.answers.runs import CleanedDataset, RunReport
from tools.data.checks.dataset import find_overlap
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, SystemSpec
from tools.data.running.defaults import KEEP_ALL, cleaning_steps, deduplicating_steps
from tools.data.running.looking import TEXTS, Seen, look_at
from tools.data.running.outputs import (
    Outputs,
    check_free,
    describe_data,
    digest_of,
    find_outputs,
)
from tools.data.running.readiness import check_ready
from tools.data.running.runs import run_recipe
from tools.data.worker.entries import SKIPS_ROWS, stem_of
from tools.data.worker.texts import joined, values_of
from tools.sandbox.files.sandbox import Sandbox

Work = Literal["clean", "dedupe", "dedupe_near"]
"""Whether texts are mended and rows without any dropped, and which repeated rows are dropped."""

WORK: tuple[Work, ...] = ("clean", "dedupe")

SAMPLED = 200
"""Rows that the recipe is made for."""


def default_output(source: str) -> str:
    """Returns where the cleaned rows of a source are written, unless the caller says so."""
    plain = PurePosixPath(source.rstrip("/"))
    if not plain.stem:
        raise InvalidArgumentsError(
            f"{source!r} has no name for the result.", next_actions=["Give output_path."]
        )
    return str(plain.with_name(f"{stem_of(plain.name)}.clean.jsonl"))


def describe_replacing(sandbox: Sandbox, source: str, output: str) -> tuple[str, str]:
    """Returns the digest of what a call replaces, and its description; both empty for nothing."""
    outputs = find_outputs(sandbox, [output, *_extra_files(output)])
    if not outputs.replaced:
        return "", ""
    reads = f"reads: {describe_data(sandbox, source)}"
    lines = [reads, f"writes: {output}", *outputs.describe(sandbox)]
    return _digest(outputs), "\n".join(lines)


async def clean(  # each is one choice of the caller
    context: RequestContext,
    source: str,
    work: Sequence[Work],
    *,
    output: str,
    text_key: str | None,
    keep_stats: bool,
    overwrite: bool,
    digest: str | None,
    dry_run: bool,
    seconds: float,
) -> CleanedDataset:
    """Makes a recipe for a data set, runs it, and writes both down with a report."""
    seen = await look_at(context, source, SAMPLED)
    if seen.broken and (seen.form == "json" or not seen.rows):
        raise InvalidArgumentsError(
            f"{source} cannot be read: {seen.broken[0]}.", next_actions=["Correct it there."]
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
    find = partial(_outputs, context.sandbox, source, output, digest, overwrite=overwrite)
    outputs = Outputs() if dry_run else await anyio.to_thread.run_sync(find)
    check = partial(check_ready, plan.recipe, context.sandbox, dry_run=dry_run, outputs=outputs)
    ready = await anyio.to_thread.run_sync(check)
    report = await run_recipe(ready, context, seconds=seconds)
    extra: dict[str, Any] = {"recipe": plan.to_yaml()}
    if not dry_run:
        tell = partial(_write_extra_files, context.sandbox, source, output, plan, report, outputs)
        extra |= await anyio.to_thread.run_sync(tell)
    return CleanedDataset.model_validate({**report.model_dump(), **extra})


def _outputs(
    sandbox: Sandbox, source: str, output: str, digest: str | None, *, overwrite: bool
) -> Outputs:
    paths = [output, *_extra_files(output)]
    for path in paths:
        if find_overlap(sandbox, path, [source]):
            raise ConflictError(
                f"{path} would be written into {source}, which is what is read and never replaced.",
                next_actions=[Action("Give another {}.", "output_path")],
            )
    if not overwrite:
        check_free(sandbox, paths)
    outputs = find_outputs(sandbox, paths)
    if outputs.replaced and digest != _digest(outputs):
        raise ConflictError(
            f"{', '.join(outputs.replaced)}: what would be replaced has changed since the call was"
            " judged; nothing was run.",
            next_actions=["Look at what changed, and call it again without digest."],
        )
    return outputs


def _digest(outputs: Outputs) -> str:
    return hashlib.sha256(outputs.digest()).hexdigest()


def _extra_files(output: str) -> tuple[str, str]:
    """Returns where the recipe and the report of an output are."""
    stem = str(PurePosixPath(output).with_suffix(""))
    return f"{stem}.recipe.yaml", f"{stem}.report.md"


def _plan(  # what a plan is made of
    source: str, work: Sequence[Work], output: str, key: str, seen: Seen, *, keep_stats: bool
) -> Plan:
    texts = [joined(values_of(row, key)) for row in seen.rows]
    steps = list(cleaning_steps(texts)) if "clean" in work else []
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


def report_of(sandbox: Sandbox, plan_path: str, plan: Plan) -> str | None:
    """Returns where the report of a recipe is that `clean` wrote; None if there is none."""
    dataset = plan.recipe.dataset
    recipe, report = _extra_files(dataset.export_path)
    if sandbox.relative(plan_path) != sandbox.relative(recipe) or len(dataset.paths) != 1:
        return None
    if find_overlap(sandbox, report, dataset.local_paths):
        return None
    try:
        sandbox.open_read(report).close()
    except NotFoundError:
        return None
    return report


def renew_report(
    sandbox: Sandbox, plan_path: str, plan: Plan, report: RunReport, outputs: Outputs
) -> None:
    """Writes the report again of a recipe that `clean` wrote and that was run again; blocks."""
    if path := report_of(sandbox, plan_path, plan):
        source = digest_of(sandbox, plan.recipe.dataset.paths[0])
        outputs.write(sandbox, path, report.to_markdown(source, PurePosixPath(plan_path).name))


def _write_extra_files(
    sandbox: Sandbox, source: str, output: str, plan: Plan, report: RunReport, outputs: Outputs
) -> Mapping[str, str]:
    recipe, path = _extra_files(output)
    outputs.write(sandbox, recipe, plan.to_yaml().encode())
    told = report.to_markdown(digest_of(sandbox, source), PurePosixPath(recipe).name)
    outputs.write(sandbox, path, told)
    return {"recipe_path": recipe, "report_path": path}
