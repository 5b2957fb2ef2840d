"""`toolcrib serve`: the server."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, FunctionsOption, RootOption
from server.cli.uncollected import uncollected

__all__ = ["Transport", "serve"]


class Transport(StrEnum):
    """How clients reach the server."""

    STDIO = "stdio"
    SSE = "sse"
    HTTP = "http"


def serve(  # noqa: PLR0913, PLR0917  # one parameter an option
    context: typer.Context,
    transport: Annotated[
        Transport, typer.Option(help="stdio for one client, sse or http for any number.")
    ] = Transport.STDIO,
    host: Annotated[str | None, typer.Option(help="Address to listen on (sse, http).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (sse, http).")] = None,
    functions: FunctionsOption = None,
    more_functions: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE_OR_DIR]...", help="More for --functions.")
    ] = None,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Serve tools and context to MCP clients."""
    if more_functions and not functions:
        raise typer.BadParameter(f"{more_functions[0]}: name function files with --functions")
    with uncollected():
        from server import logs  # noqa: PLC0415  # `--help` does not wait for the SDK
        from server.app import build  # noqa: PLC0415  # the same
        from server.settings.sources import load  # noqa: PLC0415  # the same
        from server.transport import transports  # noqa: PLC0415  # `--help` does not wait for the SDK

        flags = {
            "http.host": host,
            "http.port": port,
            "functions.paths": [*(functions or ()), *(more_functions or ())] or None,
            "root": root,
            "data_dir": data_dir,
        }
        settings = load(flags, config_file=config)
        settings.create_directories()
        logs.configure(settings)
        app = build(settings)
    match transport:
        case Transport.STDIO:
            run = partial(transports.serve_stdio, app.server, app.running(), context.obj)
        case Transport.SSE:
            run = partial(transports.serve_sse, app.server, settings.http, app.running())
        case Transport.HTTP:
            run = partial(transports.serve_http, app.server, settings.http, app.running())
    anyio.run(run)
