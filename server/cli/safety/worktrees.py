"""`toolcrib worktrees`: lists and removes git worktrees left by delegated agents."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo
from tools.core.errors import ToolError


def worktrees(
    prune: Annotated[bool, typer.Option("--prune", help="Remove those without changes.")] = False,
    discard: Annotated[
        str | None, typer.Option(metavar="NAME", help="Remove one with its changes, after asking.")
    ] = None,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """List the worktrees that delegated agents left, and remove those without changes."""
    from server.cli.opened import open_app
    from server.composition.agents import changes_in, close_lost_delegations, worktrees_of

    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        close_lost_delegations(app.settings, app.library)
        place = worktrees_of(app.settings)
        names = sorted(each.name for each in place.iterdir()) if place.is_dir() else []
        if discard is not None and discard not in names:
            raise typer.BadParameter(f"{discard!r} is not in {place}", param_hint="--discard")
        if not names:
            echo(f"No worktrees in {place}.")
        for name in names if discard is None else [discard]:
            found = app.library.delegations.of_session(name)
            state = "unknown" if found is None else found.outcome or "running"
            echo(f"{place / name}  {'?' if found is None else found.agent}, {state}")
            if state == "running" or not (prune or discard):
                continue
            try:
                made, worktree = anyio.run(partial(changes_in, app.settings, os.environ, name))
            except ToolError as error:
                echo(f"  kept: {error.message}")
                continue
            if worktree.diff and discard is None:
                echo(f"  kept: it holds changes; --discard {name} shows and removes them")
            elif not worktree.diff or _agrees(worktree.diff):
                made.remove(worktree)
                echo("  removed")


def _agrees(diff: str) -> bool:
    echo(diff)
    return typer.confirm("  Remove it with these changes?", default=False)
