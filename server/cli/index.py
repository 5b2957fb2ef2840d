"""`toolcrib index`: tools that files describe, to be found by `toolcrib search`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.options import ConfigOption, DataDirOption

if TYPE_CHECKING:
    from server.cli.record_files import Skipped
    from storage.catalog.catalog import Catalog

__all__ = ["index"]


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
    from server.cli.opened import opened  # noqa: PLC0415  # `--help` does not wait for the SDK

    if tools_dir is None and not forget_uses:
        raise typer.BadParameter("give --tools-dir, --forget-uses or both")
    if remove and tools_dir is None:
        raise typer.BadParameter("--remove needs --tools-dir: say what is to be dropped")
    if tools_dir is not None and not remove and not tools_dir.is_dir():
        raise typer.BadParameter(f"{str(tools_dir)!r} is no directory", param_hint="--tools-dir")
    with opened(data_dir=data_dir, config_file=config) as app:
        catalog = app.library.catalog
        if tools_dir is not None:
            _remove(catalog, tools_dir) if remove else _index(catalog, tools_dir)
        if forget_uses:
            typer.echo(f"Forgot {catalog.uses.forget(app.identity)} use(s).")


def _index(catalog: Catalog, given: Path) -> None:
    from server.cli.record_files import read_records  # noqa: PLC0415  # imported on first use
    from server.visible import visible  # noqa: PLC0415  # the same

    directory = Path(os.path.realpath(given))
    found = read_records(directory)
    gone = catalog.records.replace(directory, found.records)
    _warn(found.skipped)
    typer.echo(f"Indexed {len(found.records)} tool(s) from {visible(str(given))}.")
    if gone:
        typer.echo(f"Dropped {gone} that its files no longer describe.")
    _analyse(catalog)


def _remove(catalog: Catalog, given: Path) -> None:
    from server.visible import visible  # noqa: PLC0415  # imported on first use

    gone = catalog.records.replace(Path(os.path.realpath(given)), [])
    typer.echo(f"Dropped {gone} tool(s) of {visible(str(given))}.")


def _analyse(catalog: Catalog) -> None:
    """Makes and keeps what the tools are found by, so that no search waits for it."""
    from tools.core.retrieval import ToolIndex, ToolRecord  # noqa: PLC0415  # on first use

    records = (ToolRecord.model_validate(each.fields) for each in catalog.records.listed())
    tools = ToolIndex(cache=catalog.analyses)
    tools.add_tools(records)
    tools.build_index()
    tools.close()


def _warn(skipped: list[Skipped]) -> None:
    from server.cli.terminal import console, say  # noqa: PLC0415  # imported on first use

    shown = console()
    for each in skipped:
        say(shown, f"Warning: skipped {each.file}: {each.reason}", "yellow")
