"""Checks before a recipe runs: places, limits, and its operators as Data-Juicer sees them.

Nothing is copied and no person is asked before.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from tools.core.context import RequestContext
from tools.core.errors import ConflictError, InvalidArgumentsError, NotFoundError, UnavailableError
from tools.data.catalogue.catalogue import bundled, file_parameters
from tools.data.checks.dataset import find_self_writes
from tools.data.checks.findings import Findings
from tools.data.checks.media import media_limits
from tools.data.checks.rows import is_directory
from tools.data.recipe import Executor, ProcessSpec, Recipe, Step
from tools.data.running.outputs import Outputs
from tools.data.running.workers import workers_of
from tools.sandbox.files.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class ReadyRecipe:
    """A recipe that `check_ready` has let through, with the files that it may replace."""

    recipe: Recipe
    dry_run: bool
    outputs: Outputs


def check_ready(
    recipe: Recipe, sandbox: Sandbox, *, dry_run: bool, outputs: Outputs | None = None
) -> ReadyRecipe:
    """Checks all of a recipe that could end its run and is known before; blocks."""
    if recipe.on_cluster and dry_run:
        raise InvalidArgumentsError(
            f"dry_run: executor_type {recipe.system.executor_type} always runs on all rows.",
            next_actions=["Try it with executor_type: default, or on a file with fewer rows."],
        )
    for fault in find_self_writes(recipe.dataset, sandbox):
        raise ConflictError(fault, next_actions=["Give another export_path."])
    for limit in media_limits(recipe, bundled()):
        raise limit
    export = recipe.dataset.export_path
    if recipe.on_cluster:
        with suppress(NotFoundError):
            if not is_directory(sandbox, export) or sandbox.list_directory(export, limit=1).entries:
                raise ConflictError(  # parts of two runs would be taken for one result
                    f"export_path: {export} already exists; a run on a cluster writes a folder of"
                    " parts.",
                    next_actions=["Give another export_path, or remove what is there."],
                )
        export = f"{export}/part"
    if not dry_run:
        sandbox.check_write(export)
    return ReadyRecipe(recipe, dry_run, outputs or Outputs())


async def check_operators(
    context: RequestContext, process: ProcessSpec, executor: Executor
) -> Findings:
    """Finds what Data-Juicer refuses when it makes operators and tries them, without the data.

    A package that is not installed is a warning: elsewhere the recipe runs. Nothing is tried where
    Data-Juicer is not set up, where no worker starts, or on a cluster; nor are operators that run
    in no set-up, that are the user's own, or that are given files to read.
    """
    known = bundled().operators
    steps = [
        each
        for each in process.operators
        if each.name in known
        and known[each.name].runs != "no"
        and not file_parameters(each.name, each.params)
    ]
    if executor != "default" or not steps:
        return Findings()
    request = {
        "do": "make",
        "source": "",
        "config": {"process": [{each.name: each.params} for each in steps]},
        "probe": [each.name for each in steps if _takes_samples(each)],
    }
    try:
        answer = await (await workers_of(context.machine)).ask(request, context)
    except UnavailableError:
        return Findings()
    findings = Findings()
    for fault in answer["faults"]:
        where = ".".join(filter(None, (fault["operator"], fault["parameter"])))
        found = findings.warnings if fault["lacks"] else findings.errors
        found.append(f"`{where}`: {fault['why']}")
    return findings


def _takes_samples(step: Step) -> bool:
    """Returns whether an operator is one on texts alone, which is tried on samples."""
    tags = bundled().operators[step.name].tags
    # Parameters with such names name a field, which the samples do not have.
    needs_no_field = not any("key" in name or "field" in name for name in step.params)
    return needs_no_field and "text" in tags and not {"multimodal", "gpu"}.intersection(tags)
