"""`toolcrib import`: folders, notes and chats into the library."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from server.cli.options import ConfigOption, DataDirOption, RootOption

if TYPE_CHECKING:
    from rich.progress import Progress

    from server.app import App
    from server.cli.tally import Outcome, Tally
    from server.cli.walk import Folder

__all__ = ["import_"]

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

MOST_SAID = 10
"""Skipped files that are named, of those with one cause; the rest are counted."""


def import_(  # noqa: PLR0913, PLR0917  # one parameter an option
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Folders, Markdown vaults, files, and exports of ChatGPT or Claude (zip or JSON).",
            exists=True,
        ),
    ],
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Delete documents imported from a folder that lacks them now."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Import folders, notes and chats; what is stored already stays as it is.

    Exits with 1 if nothing or a named file cannot be stored.
    """
    from server.cli.opened import opened  # noqa: PLC0415  # `--help` does not wait for it
    from server.cli.progress import bars, embed_all  # noqa: PLC0415  # the same
    from server.cli.tally import Tally  # noqa: PLC0415  # the same
    from server.cli.terminal import console, say  # noqa: PLC0415  # the same

    tally = Tally()
    with opened(root=root, data_dir=data_dir, config_file=config) as app:
        try:
            with bars(console()) as progress:
                anyio.run(partial(_import_all, app, paths, tally, progress, prune=prune))
                embed_all(app.library, app.library.shelf(app.identity), progress)
        except KeyboardInterrupt:
            say(console(), "Stopped. What was stored is kept; the same command goes on from there.")
            sys.exit(INTERRUPTED)
        finally:
            if as_json:
                typer.echo(json.dumps(tally.as_json(), ensure_ascii=False))
            else:
                typer.echo("".join(f"{line}\n" for line in tally.lines()), nl=False)
    if tally.failed({path.resolve() for path in paths}):
        sys.exit(1)


async def _import_all(
    app: App, paths: list[Path], tally: Tally, progress: Progress, *, prune: bool
) -> None:
    """Stores what is in the paths, each file once and by the name that has no link in it.

    Raises:
        NotFoundError: If there is nothing.
        StorageUnavailableError: If nothing more can be stored, as on a full disk.
        UnavailableError: The same.
    """
    from server.cli.importer import Importer  # noqa: PLC0415  # imported on first use
    from server.cli.terminal import say, visible  # noqa: PLC0415  # the same
    from server.cli.walk import Folder  # noqa: PLC0415  # the same

    def note(outcome: Outcome) -> None:
        tally.note(outcome)
        if outcome.result == "skipped" and (nth := tally.causes[outcome.cause]) <= MOST_SAID + 1:
            more = "More like it are counted below."
            say(progress.console, f"Skipped: {outcome.message if nth <= MOST_SAID else more}")

    def leave_out(reason: str, count: int) -> None:
        tally.left_out[reason] += count

    named = [path.resolve() for path in paths]
    found = {path: [path] for path in named if not path.is_dir()}
    folders = [Folder(path, [app.settings.data_dir.resolve()]) for path in named if path.is_dir()]
    for folder in folders:
        found[folder.path] = _listed(folder, tally, note)
    files = set(chain.from_iterable(found.values()))
    if not files:
        raise _nothing_in(paths)
    importer = Importer(app, note, leave_out)
    task = progress.add_task("Importing", total=len(files), detail="")
    for file in sorted(files):
        progress.update(task, detail=visible(file.name))
        await importer.take(file)
        progress.advance(task)
    progress.update(task, detail="")
    for folder in folders if prune else ():
        if found[folder.path]:  # an empty folder is more often a disk that is not there
            await anyio.to_thread.run_sync(importer.prune, folder, files)


def _listed(folder: Folder, tally: Tally, note: Callable[[Outcome], None]) -> list[Path]:
    from server.cli.tally import Outcome  # noqa: PLC0415  # imported on first use

    files = list(folder.files())
    tally.passed_over.update(folder.passed_over)
    for error in folder.unlisted:
        message = f"{error.filename!r} cannot be listed: {error.strerror}."
        note(Outcome(Path(error.filename), error.filename, "skipped", message))
    return files


def _nothing_in(paths: list[Path]) -> Exception:
    from tools.core.errors import NotFoundError  # noqa: PLC0415  # imported on first use

    names = ", ".join(repr(str(path)) for path in paths)
    return NotFoundError(
        f"There are no files in {names}.",
        next_actions=["Name a folder with documents; hidden and ignored files are passed over."],
    )
