"""An author's own server: serves functions over MCP, without the rest of Toolcrib."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
from mcp import Client

from server.own_server import Offer, OwnServer
from server.settings_error import SettingsError
from server.transport.stdio import serve_stdio
from storage.outbound import opt_out

__all__ = ["client_of", "serve"]

PORT = 8765


def serve(
    *offers: Offer,
    name: str = "",
    version: str = "0",
    instructions: str = "",
    transport: Literal["stdio", "http"] = "stdio",
    port: int = PORT,
) -> None:
    """Serves functions to MCP clients until the client disconnects or a signal arrives.

    The command-line options `--http` and `--port` of the program override the parameters.

    Args:
        *offers: Functions, modules with functions, or tools from `FunctionToMCP.convert`.
        name: The name of the server; by default that of the program's file.
        version: The version of the server.
        instructions: Instructions for models about the server as a whole.
        transport: "stdio" for a client that starts the program, or "http" for Streamable HTTP at
         `/mcp`, reachable from this machine only.
        port: The port for HTTP; 0 picks a free one.

    Raises:
        ToolDefinitionError: If a function cannot be converted; the message says what to change.
        ValueError: If two tools have the same name.
        SystemExit: If the transport is not available.
    """
    opt_out()
    said = _command_line(transport, port)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("toolcrib").setLevel(logging.INFO)
    own = OwnServer(
        offers,
        name=name or Path(sys.argv[0]).stem or "functions",
        version=version,
        instructions=instructions,
    )
    try:
        anyio.run(_run, own, said.transport, said.port)
    except SettingsError as error:
        sys.exit(f"Error: {error.message}")


@asynccontextmanager
async def client_of(
    *offers: Offer,
    name: str = "functions",
    version: str = "0",
    instructions: str = "",
    **client: Any,  # noqa: ANN401  # options have different types
) -> AsyncIterator[Client]:
    """Connects a client to functions in memory, for tests.

    Args:
        *offers: The same as for `serve`.
        name: The name of the server.
        version: The version of the server.
        instructions: Instructions for models about the server as a whole.
        **client: Options of `mcp.Client`, such as `elicitation_callback`, or `mode` for the
         protocol version.
    """
    own = OwnServer(offers, name=name, version=version, instructions=instructions)
    async with own.running(), Client(own.mcp, **client) as connected:
        yield connected


async def _run(own: OwnServer, transport: str, port: int) -> None:
    if transport != "http":
        await serve_stdio(own.mcp, own.running())
        return
    from server.settings.http import HttpSettings
    from server.transport.http import serve_http

    await serve_http(own.mcp, HttpSettings(port=port), own.running())


def _command_line(transport: str, port: int) -> argparse.Namespace:
    """Parses transport and port from the command line; ignores the program's own arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--http", dest="transport", action="store_const", const="http")
    parser.add_argument("--port", type=int)
    parser.set_defaults(transport=transport, port=port)
    said, _ = parser.parse_known_args()
    return said
