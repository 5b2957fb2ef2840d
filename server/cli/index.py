"""`toolcrib index`: tools that files describe, to be found by `toolcrib search`."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption

if TYPE_CHECKING:
    from server.app import App
    from server.cli.record_files import Skipped
    from storage.catalog.records import Records
    from tools.retrieval import ToolIndex

__all__ = ["index"]

SHOWN_EVERY = 0.2
"""Seconds between two looks at how far it is."""


def index(
    tools_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of JSON files that describe tools."),
    ] = None,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Drop what was indexed from the directory instead."),
    ] = False,
    forget_uses: Annotated[
        bool,
        typer.Option("--forget-uses", help="Forget which tools served which questions."),
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Index the tools that the files of a directory describe, or index them anew."""
    from server.cli.opened import opened

    if tools_dir is None and not forget_uses:
        raise typer.BadParameter("give --tools-dir, --forget-uses or both")
    if remove and tools_dir is None:
        raise typer.BadParameter("--remove needs --tools-dir: say what is to be dropped")
    if tools_dir is not None and not remove and not tools_dir.is_dir():
        raise typer.BadParameter(f"{str(tools_dir)!r} is no directory", param_hint="--tools-dir")
    with opened(data_dir=data_dir, config_file=config) as app:
        if tools_dir is not None and remove:
            _remove(app.library.catalog.records, tools_dir)
        elif tools_dir is not None:
            _index(app.library.catalog.records, tools_dir)
            _analyse(app)
        if forget_uses:
            typer.echo(f"Forgot {app.library.catalog.uses.forget(app.identity)} use(s).")


def _index(records: Records, given: Path) -> None:
    from server.cli.record_files import read_records
    from server.mcp.visible import visible

    directory = Path(os.path.realpath(given))
    found = read_records(directory)
    gone = records.replace(directory, found.records)
    _warn(found.skipped)
    typer.echo(f"Indexed {len(found.records)} tool(s) from {visible(str(given))}.")
    if gone:
        typer.echo(f"Dropped {gone} that its files no longer describe.")


def _remove(records: Records, given: Path) -> None:
    from server.mcp.visible import visible

    gone = records.replace(Path(os.path.realpath(given)), [])
    typer.echo(f"Dropped {gone} tool(s) of {visible(str(given))}.")


def _analyse(app: App) -> None:
    """Makes and keeps what tools are found by, so that no search waits for it."""
    from tools.retrieval import ToolIndex
    from tools.retrieval.catalogue import Catalogue

    index = ToolIndex(cache=app.library.catalog.analyses)
    Catalogue(app.registry, library=app.library, index=lambda: index).refresh()
    filling = threading.Thread(target=index.build_index)
    filling.start()
    try:
        _show(index, filling)
        filling.join()
    finally:
        index.close()
        filling.join()


def _show(index: ToolIndex, filling: threading.Thread) -> None:
    """Shows on a terminal how far the index is, until it is complete."""
    from server.cli.terminal.progress import bars, counter
    from server.cli.terminal.text import console

    where = console()
    if not where.is_terminal:
        return
    with bars(where) as progress:
        show = counter(progress, "Embedding")
        while filling.is_alive():
            filling.join(SHOWN_EVERY)
            show(round(min(index.coverage.values()) * len(index)), len(index))


def _warn(skipped: list[Skipped]) -> None:
    from server.cli.terminal.text import console, say

    shown = console()
    for each in skipped:
        say(shown, f"Warning: skipped {each.file}: {each.reason}", "yellow")
