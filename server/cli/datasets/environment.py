"""`toolcrib data setup` and `remove`: manage the environment of Data-Juicer."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import echo

if TYPE_CHECKING:
    from server.settings import Settings
    from tools.data.running.environment import DataEnvironment, Extent

SIZES = {"minimal": "77 packages, about 800 MB", "full": "about 530 packages and 16 GB"}
"""Disk space on Linux; a few packages differ between machines."""


def setup(
    full: Annotated[
        bool,
        typer.Option("--full", help="Include all operators' dependencies, models' libraries too."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be installed, and stop.")
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Install Data-Juicer in its own environment; run it again to resume."""
    from server.cli.terminal.errors import run, stoppable
    from server.composition.machine import data_environment
    from tools.data.running.environment import Extent

    environment = data_environment(_settings(data_dir, config), os.environ)
    extent = Extent.FULL if full else Extent.MINIMAL
    if dry_run:
        _print_plan(environment, extent)
        return
    with stoppable("Run it again to resume; completed downloads are kept."):
        made = run(partial(environment.set_up, extent, _report))
    echo(f"Data-Juicer {'is' if made else 'was already'} set up in {environment.path}.")


def remove(data_dir: DataDirOption = None, config: ConfigOption = None) -> None:
    """Remove Data-Juicer and checkpoints of unfinished runs; data sets and recipes stay."""
    from server.cli.terminal.errors import run, stoppable
    from server.composition.machine import data_checkpoints, data_environment

    settings = _settings(data_dir, config)
    data_checkpoints(settings).clear()
    environment = data_environment(settings, os.environ)
    with stoppable("Run it again to remove the rest."):
        removed = run(partial(environment.remove, _report))
    echo(f"Removed {environment.path}." if removed else "Data-Juicer is not set up.")


def _print_plan(environment: DataEnvironment, extent: Extent) -> None:
    from tools.data.release import VERSION
    from tools.data.running.environment import PINNED, WORDS, Extent

    echo(f"{environment.path} would have {SIZES[extent]}:")
    if extent is Extent.FULL:
        echo(f"py-data-juicer[all]=={VERSION} with all that it needs")
    else:
        echo(f"py-data-juicer=={VERSION}")
        echo(PINNED.read_text(encoding="utf-8").rstrip())
    echo(WORDS.read_text(encoding="utf-8").rstrip())


async def _report(line: str) -> None:
    echo(line, err=True)


def _settings(data_dir: DataDirOption, config: ConfigOption) -> Settings:
    from server.settings.sources import load

    return load({"data_dir": data_dir}, config_file=config)
