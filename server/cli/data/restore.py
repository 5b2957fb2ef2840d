"""`toolcrib restore`: a data directory out of a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption

__all__ = ["restore"]


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `toolcrib backup` made.")],
    force: Annotated[
        bool, typer.Option("--force", help="Move aside what is in the data directory.")
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Make a data directory of a backup; nothing that is there is ever deleted."""
    from server.cli.opened import opened
    from server.cli.terminal.progress import bars, counter, drain
    from server.cli.terminal.text import console
    from server.mcp.visible import visible
    from server.settings.sources import load
    from storage.keeping import backup

    target = load({"data_dir": data_dir}, config_file=config).data_dir
    with bars(console()) as progress:
        aside = backup.restore(
            file, target, force=force, on_copied=counter(progress, "Copying pages")
        )
    typer.echo(f"Restored {visible(str(target))}.")
    if aside is not None:
        typer.echo(f"What was there is now in {visible(str(aside))}; restart running servers.")
    with opened(data_dir=target, config_file=config) as app, bars(console()) as progress:
        app.library.indexer.rebuild_vectors()
        drain(app.library, progress)
