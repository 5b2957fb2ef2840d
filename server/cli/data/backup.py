"""`toolcrib backup`: a copy of everything that is stored, also while servers run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption

__all__ = ["backup"]


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier FILE.")] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy everything that is stored to one file, also while servers write."""
    from server.cli.opened import record
    from server.cli.terminal.progress import bars, counter
    from server.cli.terminal.text import console
    from server.mcp.visible import visible
    from storage.keeping.backup import back_up

    with record(data_dir, config) as database, bars(console()) as progress:
        made = back_up(database, file, force=force, on_copied=counter(progress, "Copying pages"))
    contexts = "1 context" if made.contexts == 1 else f"{made.contexts} contexts"
    typer.echo(f"Copied {contexts} to {visible(str(made.path))} ({made.size / 1e6:.1f} MB).")
