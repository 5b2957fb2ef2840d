"""`toolcrib export`, `backup`, `restore` and `rebuild`: copies and repairs stored data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import echo
from server.mcp.visible import visible


class Form(StrEnum):
    """The format of an export."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"


def export(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new file, or a new folder.")],
    form: Annotated[
        Form, typer.Option("--format", help="A file of JSON lines, or a folder of Markdown files.")
    ] = Form.JSONL,
    everybody: Annotated[
        bool, typer.Option("--all", help="The data of all users, not only yours.")
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Export contexts, profile, entities and relationships to files."""
    from server.cli.opened import record
    from server.cli.terminal.progress import bars, counter
    from server.cli.terminal.screen import console
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
    echo(f"Wrote {count} {things}{'' if count == 1 else 's'} to {visible(str(target))}.")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File for the copy.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing FILE.")] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy all stored data to one file, even while servers write."""
    from server.cli.opened import record
    from server.cli.terminal.progress import bars, counter
    from server.cli.terminal.screen import console
    from storage.keeping.backup import back_up

    with record(data_dir, config) as database, bars(console()) as progress:
        made = back_up(database, file, force=force, on_copied=counter(progress, "Copying pages"))
    contexts = "1 context" if made.contexts == 1 else f"{made.contexts} contexts"
    echo(f"Copied {contexts} to {visible(str(made.path))} ({made.size / 1e6:.1f} MB).")


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that `toolcrib backup` made.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Move existing data aside.")] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Restore a data directory from a backup; nothing in it is ever deleted."""
    from server.cli.opened import open_app
    from server.cli.terminal.progress import bars, counter, drain
    from server.cli.terminal.screen import console
    from server.settings.sources import load
    from storage.keeping import backup

    target = load({"data_dir": data_dir}, config_file=config).data_dir
    with bars(console()) as progress:
        aside = backup.restore(
            file, target, force=force, on_copied=counter(progress, "Copying pages")
        )
    echo(f"Restored {visible(str(target))}.")
    if aside is not None:
        echo(f"The previous data is now in {visible(str(aside))}; restart running servers.")
    with open_app(data_dir=target, config_file=config) as app, bars(console()) as progress:
        app.library.indexer.rebuild_vectors()
        drain(app.library, progress)


def rebuild(
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Rebuild both indexes and rewrite the database file, even while servers run."""
    from server.cli.opened import open_app, record
    from server.cli.terminal.progress import bars, drain
    from server.cli.terminal.screen import console
    from storage.keeping.erasure import erase

    with record(data_dir, config), open_app(data_dir=data_dir, config_file=config) as app:
        app.library.indexer.rebuild_words()
        app.library.indexer.rebuild_vectors()
        with bars(console()) as progress:
            done = drain(app.library, progress)
        erase(app.library.database)
    echo(f"Indexed {done.words} chunks by their words and {done.vectors} by their vectors.")
