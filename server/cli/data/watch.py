"""`toolcrib watch`: keeps folders imported while their files change."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo
from server.mcp.visible import visible

if TYPE_CHECKING:
    from server.app import App
    from server.cli.data.tally import Outcome


def watch(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER", help="Folders or Markdown vaults.", exists=True, file_okay=False
        ),
    ],
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Import folders, then follow every file that is added, changed or deleted in them."""
    from server.cli.opened import open_app

    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        app.library.indexer.start()
        anyio.run(_follow, app, [path.resolve() for path in paths])
    echo("stopped")


async def _follow(app: App, paths: list[Path]) -> None:
    """Follows the folders until the user or the system stops it."""
    from server.cli.data.follower import Follower
    from server.cli.data.importer import Importer
    from server.cli.data.walk import Folder

    reasons: dict[Path, str] = {}

    def tell(outcome: Outcome) -> None:
        known = reasons.pop(outcome.file, "")
        if outcome.result == "skipped":
            reasons[outcome.file] = outcome.cause
            if outcome.cause != known:
                _say(f"skipped {outcome.message}")
        elif outcome.result != "unchanged":
            _say(f"{outcome.result} {outcome.name}")

    folders = [Folder(path, [app.settings.data_dir.resolve()]) for path in paths]
    follower = Follower(folders, Importer(app, tell, lambda _reason, _count: None), _say)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            tasks.start_soon(follower.run, stop)
            async for _ in signals:
                stop.set()
                tasks.cancel_scope.cancel()


def _say(line: str) -> None:
    echo(visible(line))
