"""Runs of recipes: staged, run by a worker within their time, and delivered if they succeed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.to_thread import run_sync

from tools.core.context import RequestContext
from tools.core.errors import Action, DeadlineError, ToolError
from tools.data.answers.runs import RunReport
from tools.data.catalogue.catalogue import bundled
from tools.data.checks.media import media_steps
from tools.data.running.checkpoints import Resuming, keys_of
from tools.data.running.readiness import ReadyRecipe
from tools.data.running.staging import MOST_MEDIA, Stage, place_folders
from tools.data.running.workers import DataWorkers, workers_of

TRIED_ROWS = 1_000  # that a dry run reads
SHOWN = 6  # rows of each kind in a report


async def run_recipe(
    ready: ReadyRecipe,
    context: RequestContext,
    *,
    seconds: float,
    check: Callable[[Mapping[str, Any]], None] = lambda _config: None,
) -> RunReport:
    """Runs a recipe within a time; nothing inside the root is changed before it has succeeded.

    `check` raises if what was copied in, as the worker's configuration names it, must not run.
    """
    workers = await workers_of(context.machine)
    run: _Run | None = None
    with anyio.move_on_after(seconds):
        async with workers.directory() as directory:
            resuming = Resuming(workers.checkpoints, directory)
            run = _Run(ready, context, workers, Stage(context.sandbox, directory), resuming)
            return await run.complete(check)
    raise DeadlineError(
        f"The recipe was ended after {seconds:g} seconds; nothing was written.",
        next_actions=[
            *(run.next_actions() if run else ()),
            "Give it fewer rows.",
            Action("Or give it more {}.", "timeout_seconds"),
        ],
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a recipe, in a directory that its worker sees."""

    ready: ReadyRecipe
    context: RequestContext
    workers: DataWorkers
    stage: Stage
    resuming: Resuming

    async def complete(self, check: Callable[[Mapping[str, Any]], None]) -> RunReport:
        await self.context.report_progress(0, None, "Copying")
        config = await run_sync(self.stage.config, self.ready.recipe)
        await run_sync(check, config)
        answer = await self._operate(await self._make_request(config))
        dry_run, written = self.ready.dry_run, []
        if not dry_run:
            deliver, export = self.stage.deliver, self.ready.recipe.dataset.export_path
            with anyio.CancelScope(shield=True):  # of several files, all or none
                written = await run_sync(deliver, export, self.ready.outputs)
        report = RunReport.model_validate({**answer, "dry_run": dry_run, "written": written})
        await run_sync(self.resuming.move_to, 0)
        return report

    def next_actions(self) -> list[str]:
        if not self.resuming.done:
            return []
        last = self.ready.recipe.process.operators[self.resuming.done - 1].name
        return [f"Run it again with the same data: it continues after {last}."]

    async def _make_request(self, config: dict[str, Any]) -> dict[str, Any]:
        """Returns the request to run a recipe, whose media are copied in or whose keys are set."""
        directory, paths = self.stage.directory, self.ready.recipe.dataset.paths
        request = {
            "do": "run",
            "config": config,
            "source": ", ".join(paths) or "The data set",
            "directory": str(directory),
            "sample": SHOWN,
            "limit": TRIED_ROWS if self.ready.dry_run else None,
        }
        if media_steps(self.ready.recipe, bundled()):  # their copies are elsewhere in the next run
            place_folders(config, directory)
            question = {**request, "do": "name_files", "most": MOST_MEDIA + 1}
            named = await self._ask(question, self.context)
            [source], export = paths, self.ready.recipe.dataset.export_path  # others have no media
            take = self.stage.take_media
            request["files"] = await run_sync(take, named["files"], source, export)
        elif not (self.ready.dry_run or self.ready.recipe.on_cluster):
            runs_on = await run_sync(self.workers.runs_on)
            self.resuming.keys = keys_of(config, directory, self.stage.content, runs_on)
        return request

    async def _operate(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lets a worker go on from what is kept, and keeps what it did if it does not succeed."""

        async def hear(done: float, total: float | None, message: str | None) -> None:
            await run_sync(self.resuming.take)
            await self.context.report_progress(done, total, message)

        before = await run_sync(self.resuming.begin)
        try:
            return await self._ask({**request, **before}, self.context.reporting(hear))
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await run_sync(self.resuming.take)
            if isinstance(error, ToolError):
                error.next_actions = (*error.next_actions, *self.next_actions())
            raise

    async def _ask(self, request: Mapping[str, Any], context: RequestContext) -> Mapping[str, Any]:
        has_code = bool(self.ready.recipe.process.custom_operator_paths)
        free = self.ready.recipe.on_cluster
        return await self.workers.ask(request, context, alone=has_code, free=free)
