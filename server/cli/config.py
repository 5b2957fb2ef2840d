"""`toolcrib config`: the effective settings, and where each comes from."""

from __future__ import annotations

import dataclasses
import json

from server.cli.terminal.options import ConfigOption, DataDirOption, JsonOption, RootOption
from server.cli.terminal.screen import print_json, say
from server.mcp.visible import visible
from server.settings.settings import DEFAULT_SOURCE
from server.settings.sources import SettingRow, explain, load


def config(
    as_json: JsonOption = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Show the effective settings and where each comes from."""
    rows = explain(load({"root": root, "data_dir": data_dir}, config_file=config_file))
    if as_json:
        print_json([dataclasses.asdict(row) for row in rows])
    else:
        for row in rows:
            _print(row)


def _print(row: SettingRow) -> None:
    """Prints a setting as in the file, with its source, and its meaning below."""
    value = "not set" if row.value is None else json.dumps(row.value, ensure_ascii=False)
    origin = "dim" if row.source == DEFAULT_SOURCE else "green"
    say((row.key, "bold"), f" = {visible(value)}", (f"  ({visible(row.source)})", origin))
    say(f"    {row.description}")
