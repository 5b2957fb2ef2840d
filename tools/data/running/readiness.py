"""Whether a recipe can run here, checked before anything is copied or a person is asked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from tools.core.errors import ConflictError, InvalidArgumentsError, NotFoundError
from tools.data.catalogue.bundle import bundled
from tools.data.checks.dataset import find_self_writes
from tools.data.checks.media import media_limits
from tools.data.checks.rows import is_directory
from tools.data.recipe import Recipe
from tools.data.running.outputs import Outputs
from tools.sandbox.files.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class ReadyRecipe:
    """A recipe that `check_ready` has let through: only such are run.

    Attributes:
        recipe: The recipe.
        dry_run: Whether only the first rows are read, and nothing is written.
        outputs: The files that it may replace.
    """

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
        _check_new(sandbox, export)
        export = f"{export}/part"
    if not dry_run:
        sandbox.check_write(export)
    return ReadyRecipe(recipe, dry_run, outputs or Outputs())


def _check_new(sandbox: Sandbox, export: str) -> None:
    """Refuses a folder with files: parts of two runs would be taken for one result."""
    with suppress(NotFoundError):
        if is_directory(sandbox, export) and not sandbox.list_directory(export, limit=1).entries:
            return
        raise ConflictError(
            f"export_path: {export} already exists; a run on a cluster writes a folder of parts.",
            next_actions=["Give another export_path, or remove what is there."],
        )
