"""Runs of recipes: staged, run by a worker within their time, and delivered if they succeed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from tools.core.calling.words import Action
from tools.core.context import RequestContext
from tools.core.errors import DeadlineError, ToolError
from tools.data.answers.runs import RunReport, WrittenFile
from tools.data.catalogue.bundle import bundled
from tools.data.checks.media import media_steps
from tools.data.recipe import Recipe
from tools.data.running.checkpoints import Resuming, keys_of
from tools.data.running.media import MOST_FILES, place_folders, place_media
from tools.data.running.readiness import ReadyRecipe
from tools.data.running.staging import Stage
from tools.data.running.workers import DataWorkers, workers_of

TRIED_ROWS = 1_000
"""Rows that a dry run reads."""

SHOWN = 6
"""Rows of each kind that are shown."""


async def run_recipe(
    ready: ReadyRecipe,
    context: RequestContext,
    *,
    seconds: float,
    check: Callable[[Mapping[str, Any]], None] = lambda _config: None,
) -> RunReport:
    """Runs a recipe; nothing beneath the root is changed before it has succeeded.

    Args:
        ready: The recipe.
        context: Whose call it is, of the scope system.
        seconds: How long it may take.
        check: Raises if what was copied in, as the configuration names it, is not to be run.
    """
    recipe, dry_run = ready.recipe, ready.dry_run
    workers = await workers_of(context.machine)
    resuming = None
    with anyio.move_on_after(seconds):
        async with workers.directory() as directory:
            stage = Stage(context.sandbox, directory)
            await context.report_progress(0, None, "Copying")
            config = await anyio.to_thread.run_sync(stage.config, recipe)
            await anyio.to_thread.run_sync(check, config)
            asked = {
                "do": "run",
                "config": config,
                "source": ", ".join(recipe.dataset.paths) or "The data set",
                "directory": str(directory),
                "sample": SHOWN,
                "limit": TRIED_ROWS if dry_run else None,
            }
            keys = []
            if media_steps(recipe, bundled()):  # their copies are elsewhere in the next run
                place_folders(config, directory)
                asked["files"] = await _media(asked, recipe, stage, workers, context)
            elif not (dry_run or recipe.on_cluster):
                runs_on = await anyio.to_thread.run_sync(workers.runs_on)
                keys = keys_of(config, directory, stage.content, runs_on)
            resuming = Resuming(workers.checkpoints, keys, directory)
            is_own = bool(recipe.process.custom_operator_paths)
            ask = partial(workers.ask, alone=is_own, free=recipe.on_cluster)
            answer = await _resumable(ask, asked, resuming, recipe, context)
            deliver = partial(stage.deliver, recipe.dataset.export_path, ready.outputs)
            report = await _delivered(deliver, answer, dry_run=dry_run)
            await anyio.to_thread.run_sync(resuming.end)
            return report
    raise DeadlineError(
        f"The recipe was ended after {seconds:g} seconds; nothing was written.",
        next_actions=[
            *([] if resuming is None else _goes_on(resuming, recipe)),
            "Give it fewer rows.",
            Action("Or give it more {}.", "timeout_seconds"),
        ],
    )


async def _media(
    asked: Mapping[str, Any],
    recipe: Recipe,
    stage: Stage,
    workers: DataWorkers,
    context: RequestContext,
) -> dict[str, tuple[str, str]]:
    """Copies in the files that rows name; where each is, and how the result names it."""
    question = {**asked, "do": "name_files", "most": MOST_FILES + 1}
    named = await workers.ask(question, context)
    [source], export = recipe.dataset.paths, recipe.dataset.export_path  # no more are read so
    place = partial(place_media, stage, named["files"], source, export)
    return await anyio.to_thread.run_sync(place)


async def _resumable(
    ask: Callable[[Mapping[str, Any], RequestContext], Awaitable[Mapping[str, Any]]],
    asked: Mapping[str, Any],
    resuming: Resuming,
    recipe: Recipe,
    context: RequestContext,
) -> Mapping[str, Any]:
    """Has a worker go on from what is kept, and keeps what it has done if it does not succeed."""

    async def heard(done: float, total: float | None, message: str | None) -> None:
        await anyio.to_thread.run_sync(resuming.take)
        await context.report_progress(done, total, message)

    before = await anyio.to_thread.run_sync(resuming.begin)
    try:
        return await ask({**asked, **before}, replace(context, report_progress=heard))
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(resuming.take)
        if isinstance(error, ToolError):
            error.next_actions = (*error.next_actions, *_goes_on(resuming, recipe))
        raise


def _goes_on(resuming: Resuming, recipe: Recipe) -> list[str]:
    """What to do next where something is kept."""
    if not resuming.done:
        return []
    last = recipe.process.operators[resuming.done - 1].name
    return [f"Run it again with the same data: it goes on after {last}."]


async def _delivered(
    deliver: Callable[[], list[WrittenFile]], answer: Mapping[str, Any], *, dry_run: bool
) -> RunReport:
    written = []
    if not dry_run:
        with anyio.CancelScope(shield=True):  # of several files, all or none
            written = await anyio.to_thread.run_sync(deliver)
    return RunReport.model_validate({**answer, "dry_run": dry_run, "written": written})
