"""`toolcrib data`: manages Data-Juicer's environment and cleans data sets with it."""

from __future__ import annotations

import typer

from server.cli.datasets.environment import remove, setup
from server.cli.datasets.parts import split
from server.cli.datasets.verbs import clean, dedupe, export, inspect

__all__ = ["data"]

data = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Clean data sets with Data-Juicer, in its own environment.",
)
for _command in (setup, inspect, clean, dedupe, split, export, remove):
    data.command(_command.__name__)(_command)
