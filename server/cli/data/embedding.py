"""Embeds in a separate process, which continues after the command that started it ends.

The queue of passages is in the record, so nothing depends on that process: if it is killed,
the next server or command continues.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.app import App

NICENESS = 10
"""The process's niceness, so that other work on the machine takes precedence."""


def embed_in_background(app: App) -> None:
    """Starts a process that embeds the pending passages, and prints a notice."""
    from server.cli.terminal.screen import console, print_line
    from storage.index.indexer import read_backlog

    with app.library.database.read() as connection:
        waiting = read_backlog(connection).embeddings
    if not waiting:
        return
    settings = app.settings
    file = settings.config_file
    config = [str(file.absolute())] if file is not None and file.exists() else []
    arguments = [str(settings.data_dir.absolute()), *config]
    subprocess.run(  # noqa: S603  # this Python
        [sys.executable, "-m", __name__, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        start_new_session=True,  # survives a closed terminal
    )
    print_line(
        console(),
        f"Keyword search is ready. {waiting} passages are still being embedded for"
        " semantic search.",
    )


def _embed(data_dir: Path, config: Path | None) -> None:
    """Embeds until the queue is empty, or waits for the process that does."""
    from rich.console import Console

    from server.cli.opened import open_app
    from server.cli.terminal.progress import bars, drain

    os.nice(NICENESS)
    with open_app(data_dir=data_dir, config_file=config) as app:
        drain(app.library, bars(Console(quiet=True)))


if __name__ == "__main__" and not os.fork():  # the parent process need not wait for it
    _embed(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
