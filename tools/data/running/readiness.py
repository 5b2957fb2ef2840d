"""Whether a recipe can run here, told before anything is copied or anybody is asked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from tools.core.errors import ConflictError, InvalidArgumentsError, NotFoundError
from tools.data.catalogue.bundle import bundled
from tools.data.checks.media import media_limits
from tools.data.checks.rows import is_directory
from tools.data.recipe import Recipe
from tools.sandbox.files.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class ReadyRecipe:
    """A recipe that `check_ready` has let through: only such are run, and not looked at again.

    Attributes:
        recipe: The recipe.
        dry_run: Whether only the first rows are read, and nothing is written.
    """

    recipe: Recipe
    dry_run: bool


def check_ready(recipe: Recipe, sandbox: Sandbox, *, dry_run: bool) -> ReadyRecipe:
    """Lets a recipe through of which nothing is known that would end its run; blocks.

    Args:
        recipe: The recipe, with paths relative to the root.
        sandbox: The files.
        dry_run: Whether only the first rows are read, and nothing is written.

    Raises:
        InvalidArgumentsError: If it asks for what is not done here.
        ConflictError: If it would replace what it reads, or add to what a folder holds.
        ToolError: As `Sandbox.check_write`, if its result cannot be written.
    """
    if recipe.on_cluster and dry_run:
        raise InvalidArgumentsError(
            f"dry_run: executor_type {recipe.system.executor_type} always runs on all rows.",
            next_actions=["Try it with executor_type: default, or on a file with fewer rows."],
        )
    _check_source(recipe, sandbox)
    for limit in media_limits(recipe, bundled()):
        raise limit
    export = recipe.dataset.export_path
    if recipe.on_cluster:
        _check_new(sandbox, export)
        export = f"{export}/part"
    if not dry_run:
        sandbox.check_write(export)
    return ReadyRecipe(recipe, dry_run)


def _check_source(recipe: Recipe, sandbox: Sandbox) -> None:
    export = sandbox.relative(recipe.dataset.export_path)
    if any(sandbox.relative(path) == export for path in recipe.dataset.paths):
        raise ConflictError(
            f"export_path: {recipe.dataset.export_path} is what the recipe reads; it is never"
            " replaced.",
            next_actions=["Give another export_path."],
        )


def _check_new(sandbox: Sandbox, export: str) -> None:
    """Goes on where a folder of parts can be made; those of two runs would be taken for one."""
    with suppress(NotFoundError):
        if is_directory(sandbox, export) and not sandbox.list_directory(export, limit=1).entries:
            return
        raise ConflictError(
            f"export_path: {export} is there; a run on a cluster writes a folder of parts.",
            next_actions=["Give another export_path, or remove what is there."],
        )
