"""`toolcrib add`: files and folders into the library."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from server.cli.options import ConfigOption, DataDirOption, RootOption

if TYPE_CHECKING:
    from rich.progress import Progress

    from server.app import App
    from tools.core.spec import ToolResult

__all__ = ["add"]

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def add(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files or folders.", exists=True)
    ],
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Add documents, and embed them; exits with 1 if nothing or a named file cannot be added."""
    from server.cli.opened import opened  # noqa: PLC0415  # `--help` does not wait for it
    from server.cli.progress import bars, embed_all  # noqa: PLC0415  # the same
    from server.cli.terminal import console, say  # noqa: PLC0415  # the same

    outcomes: dict[Path, str] = {}
    with opened(root=root, data_dir=data_dir, config_file=config) as app:
        try:
            with bars(console()) as progress:
                anyio.run(_add_all, app, _found(paths, progress), progress, outcomes)
                embed_all(app.library, app.library.shelf(app.identity), progress)
        except KeyboardInterrupt:
            say(console(), "Stopped. What was added is kept; the same command goes on from there.")
            sys.exit(INTERRUPTED)
        finally:
            if counts := Counter(outcomes.values()):
                typer.echo(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    skipped = {file for file, outcome in outcomes.items() if outcome == "skipped"}
    if len(skipped) == len(outcomes) or not skipped.isdisjoint(path.resolve() for path in paths):
        sys.exit(1)


def _found(paths: list[Path], progress: Progress) -> list[Path]:
    """The files beneath the paths, each once and by the name that has no link in it."""
    from server.cli.terminal import say  # noqa: PLC0415  # imported on first use
    from server.cli.walk import files_beneath  # noqa: PLC0415  # the same
    from tools.core.errors import NotFoundError  # noqa: PLC0415  # the same

    def refused(error: OSError) -> None:
        say(progress.console, f"Skipped: {error.filename!r} cannot be listed: {error.strerror}.")

    files = sorted({file for path in paths for file in files_beneath(path.resolve(), refused)})
    if not files:
        names = ", ".join(repr(str(path)) for path in paths)
        raise NotFoundError(
            f"There are no files in {names}.",
            next_actions=["Name a folder with documents; hidden files and links are passed over."],
        )
    return files


async def _add_all(
    app: App, files: list[Path], progress: Progress, outcomes: dict[Path, str]
) -> None:
    """Adds the files one by one and notes what became of each.

    Raises:
        UnavailableError: If nothing more can be stored, as on a full disk.
    """
    from server.cli.terminal import say, visible  # noqa: PLC0415  # imported on first use
    from tools.core.errors import UnavailableError  # noqa: PLC0415  # the same

    task = progress.add_task("Adding", total=len(files), detail="")
    for file in files:
        progress.update(task, detail=visible(file.name))
        result = await _add(app, file)
        answer = result.structured
        if not result.is_error:
            outcomes[file] = answer["outcome"]
        elif answer["error_type"] == UnavailableError.error_type:
            raise UnavailableError(answer["message"], next_actions=answer["next_actions"])
        else:
            outcomes[file] = "skipped"
            say(progress.console, f"Skipped: {answer['message']}")
        progress.advance(task)
    progress.update(task, detail="")


async def _add(app: App, file: Path) -> ToolResult:
    """Adds one file through the call path, on the word of the person at the keyboard.

    A file beneath the root goes the way of an agent, so that both mean the same document.
    """
    from server.cli.walk import check_name  # noqa: PLC0415  # imported on first use
    from tools.core.errors import InvalidArgumentsError  # noqa: PLC0415  # the same
    from tools.core.spec import ToolResult  # noqa: PLC0415  # the same

    try:
        check_name(file)
    except InvalidArgumentsError as error:
        return ToolResult.failure(error)
    root = app.settings.root
    if file.is_relative_to(root):
        arguments = {"path": str(file.relative_to(root))}
        return await app.manager.execute("add_document", arguments, app.context)
    arguments = {"path": str(file), "raw_id": str(file)}
    return await app.personal.execute("add_document", arguments, app.context)
