"""`toolcrib export`: what is stored, in files that anything can read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption

__all__ = ["export"]


class Form(StrEnum):
    """What an export looks like."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"


def export(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new file, or a new folder.")],
    form: Annotated[
        Form, typer.Option("--format", help="A file of JSON lines, or a folder of Markdown files.")
    ] = Form.JSONL,
    everybody: Annotated[bool, typer.Option("--all", help="Everybody's, not only yours.")] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Write contexts, profile, entities and relationships to files."""
    from server.cli.opened import record
    from server.cli.terminal.progress import bars, counter
    from server.cli.terminal.text import console
    from server.mcp.visible import visible
    from server.settings.sources import load
    from storage.keeping.export import export_jsonl, export_markdown
    from storage.models import Identity

    settings = load({"data_dir": data_dir}, config_file=config)
    whose = None if everybody else Identity(**settings.identity.model_dump())
    write, things = {
        Form.JSONL: (export_jsonl, "record"),
        Form.MARKDOWN: (export_markdown, "file"),
    }[form]
    target = target.absolute()
    with record(data_dir, config) as database, bars(console()) as progress:
        count = write(database, target, whose, counter(progress, "Exporting"))
    typer.echo(f"Wrote {count} {things}{'' if count == 1 else 's'} to {visible(str(target))}.")
