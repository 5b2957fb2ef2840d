"""`toolcrib add`: files and folders into the library."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from server.cli.options import ConfigOption, DataDirOption, RootOption
from server.cli.walk import files_beneath

if TYPE_CHECKING:
    from rich.progress import Progress

    from server.app import App
    from tools.core.spec import ToolResult

__all__ = ["add"]


def add(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files or folders.", exists=True)
    ],
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Add documents, and embed them; exits with 1 if nothing could be added."""
    from rich.progress import Progress  # noqa: PLC0415  # `--help` does not wait for it

    from server.cli.opened import opened  # noqa: PLC0415  # the same
    from server.cli.progress import columns, console, embed_all  # noqa: PLC0415  # the same

    files = sorted({file.absolute() for path in paths for file in files_beneath(path)})
    outcomes: Counter[str] = Counter()
    with (
        opened(root=root, data_dir=data_dir, config_file=config) as app,
        Progress(*columns(), console=console()) as progress,
    ):
        anyio.run(_add_all, app, files, progress, outcomes)
        embed_all(app.library, app.library.shelf(app.identity), progress)
    summary = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    typer.echo(summary or "No files there.")
    if not outcomes.total() - outcomes["skipped"]:
        sys.exit(1)


async def _add_all(app: App, files: list[Path], progress: Progress, outcomes: Counter[str]) -> None:
    task = progress.add_task("Adding", total=len(files))
    for file in files:
        progress.update(task, description=f"Adding {file.name}")
        result = await _add(app, file)
        if result.is_error:
            progress.console.print(f"skipped {file}: {result.structured['message']}", markup=False)
            outcomes["skipped"] += 1
        else:
            outcomes[result.structured["outcome"]] += 1
        progress.advance(task)
    progress.update(task, description="Added")


async def _add(app: App, file: Path) -> ToolResult:
    """Adds one file through the call path, on the word of the person at the keyboard.

    A file beneath the root is named as an agent names it, so that both mean the same document.
    """
    beneath = file.is_relative_to(app.settings.root)
    name = file.relative_to(app.settings.root) if beneath else file
    arguments = {"path": str(file), "raw_type": "file", "raw_id": name.as_posix()}
    return await app.personal.execute("add_document", arguments, app.context)
