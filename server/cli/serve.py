"""`toolcrib serve`: the server."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, FunctionsOption, RootOption
from server.cli.uncollected import uncollected

if TYPE_CHECKING:
    from server.settings import Settings

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
        from server import logs
        from server.app import build
        from server.cli.invocation import invocation_elsewhere
        from server.settings.sources import load
        from server.transport import transports

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
        app = build(settings, command=invocation_elsewhere(settings))
    match transport:
        case Transport.STDIO:
            if sys.stdin is not None and sys.stdin.isatty():
                _tell_person(settings, config)
            run = partial(transports.serve_stdio, app.server, app.running(), context.obj)
        case Transport.SSE:
            run = partial(transports.serve_sse, app.server, settings.http, app.running())
        case Transport.HTTP:
            run = partial(transports.serve_http, app.server, settings.http, app.running())
    anyio.run(run)


def _tell_person(settings: Settings, config: Path | None) -> None:
    """Says at a terminal, where no client is, what this command waits for."""
    from server.cli.invocation import invocation
    from server.clients.locations import (  # no client waits for it
        claude_code_command,
        command_path,
        servers_json,
    )

    command, arguments = command_path(), _arguments(settings, config)
    typer.echo(
        "Waiting for an MCP client on stdin. Clients start this command themselves: there is\n"
        "nothing to type here. Ctrl-C ends it.\n\n"
        f"To connect Claude Code, run:\n\n{claude_code_command(command, arguments)}\n\n"
        "For another client, put this into its configuration file, or for a project into\n"
        f".mcp.json:\n\n{servers_json(command, arguments)}\n\n"
        f"More clients: `{invocation()} demo`\n"
        f"Over HTTP:    `{invocation()} serve --transport http`",
        err=True,
    )


def _arguments(settings: Settings, config: Path | None) -> list[str]:
    """What a client gives to the command, wherever it starts it, for this very server."""
    named = [("--root", settings.root), *(("--functions", each) for each in _flagged(settings))]
    if settings.source_of("data_dir") == "--data-dir":
        named.append(("--data-dir", settings.data_dir))
    if config is not None:
        named.append(("--config", config))
    words = ((option, str(path.absolute())) for option, path in named)
    return ["serve", *chain.from_iterable(words)]


def _flagged(settings: Settings) -> tuple[Path, ...]:
    is_flag = settings.source_of("functions.paths") == "--functions"
    return settings.functions.paths if is_flag else ()
