"""`toolcrib serve`: runs the server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from server.cli import serving
from server.cli.serving import Transport
from server.cli.terminal.options import ConfigOption, DataDirOption, FunctionsOption, RootOption
from server.fast_start.reader import flags_of


def serve(  # noqa: PLR0913, PLR0917  # one parameter an option
    transport: Annotated[
        Transport, typer.Option(help="stdio serves one client; sse and http serve any number.")
    ] = Transport.STDIO,
    host: Annotated[str | None, typer.Option(help="Address to listen on (sse, http).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (sse, http).")] = None,
    functions: FunctionsOption = None,
    more_functions: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE_OR_DIR]...", help="More function files or directories."),
    ] = None,
    root: RootOption = None,
    allow_broad_root: Annotated[
        bool, typer.Option("--allow-broad-root", help="Let root be your home, or hold it.")
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Serve tools and context to MCP clients."""
    if more_functions and not functions:
        raise typer.BadParameter(f"{more_functions[0]}: name function files with --functions")
    files = [*(functions or ()), *(more_functions or ())]
    allowed = allow_broad_root or None
    flags = flags_of(files, root, data_dir, host, port, allow_broad_root=allowed)
    serving.serve(flags, config, transport=transport)
