"""`toolcrib data`: Data-Juicer's environment, and data sets that are cleaned with it."""

from __future__ import annotations

import typer

from server.cli.datasets.environment import remove, setup

__all__ = ["data"]

data = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Clean data sets with Data-Juicer, in an environment of its own.",
)
for _command in (setup, remove):
    data.command(_command.__name__)(_command)
