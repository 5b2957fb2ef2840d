"""`toolcrib config`: the effective settings, and where each comes from."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.settings.sources import SettingRow, explain, load

__all__ = ["config"]


def config(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Show the effective settings and where each comes from."""
    rows = explain(load({"root": root, "data_dir": data_dir}, config_file=config_file))
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
    else:
        _print_table(rows)


def _print_table(rows: list[SettingRow]) -> None:
    from rich.console import Console  # noqa: PLC0415  # `--json` needs none
    from rich.table import Column, Table  # noqa: PLC0415  # the same
    from rich.text import Text  # noqa: PLC0415  # the same

    table = Table(Column("Setting", no_wrap=True), "Value", "From", "Meaning")
    for row in rows:
        value = row.value if isinstance(row.value, str) else json.dumps(row.value)
        # Text, because a value may hold what rich takes for markup.
        cells = (Text(cell, overflow="fold") for cell in (value, row.source))
        table.add_row(row.key, *cells, row.description)
    Console().print(table)
