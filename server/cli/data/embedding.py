"""Embedding in a process of its own, which goes on when the command that began it has ended.

What is to be embedded stands in the record, so nothing depends on that process: where it is killed,
the next server or command goes on.
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
"""How far it stands back behind whatever else the machine does."""


def embed_in_background(app: App) -> None:
    """Has what waits embedded by another process, and says so.

    Args:
        app: The product whose settings, and whose data, it is about.
    """
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
    subprocess.run(  # noqa: S603  # this very Python
        [sys.executable, "-m", __name__, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        start_new_session=True,  # a terminal that closes does not end it
    )
    print_line(
        console(),
        f"Everything is found by its words; {waiting} passages are being embedded in the"
        " background, to be found by meaning too.",
    )


def _embed(data_dir: Path, config: Path | None) -> None:
    """Embeds until nothing waits, or waits for the process that does."""
    from rich.console import Console

    from server.cli.opened import opened
    from server.cli.terminal.progress import bars, drain

    os.nice(NICENESS)
    with opened(data_dir=data_dir, config_file=config) as app:
        drain(app.library, bars(Console(quiet=True)))


if __name__ == "__main__" and not os.fork():  # whoever began it need not wait for its end
    _embed(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
