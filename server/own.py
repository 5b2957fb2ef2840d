"""An author's own server: serves functions over MCP, without the rest of Toolcrib."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.lowlevel
from mcp import Client
from mcp.server.lowlevel import Server

from server.mcp.browsing.objections import objection_to
from server.mcp.protocol import build_server
from server.mcp.sessions import ClientRequests, Sessions
from server.mcp.surface import FULL, Surface
from server.settings_file import SettingsError
from server.transport.stdio import serve_stdio
from storage.models import Identity
from storage.outbound import opt_out
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.public import offered_by, options_of, public_functions, to_call
from tools.core.calling.direct import DirectCalls
from tools.core.offered import Offered, Spec
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

if TYPE_CHECKING:
    from server.mcp.browsing.provider import Browsing

__all__ = ["client_of", "serve"]

PORT = 8765

Offer = Callable[..., Any] | ModuleType | ToolSpec
"""A function, a module with functions, or a tool from `FunctionToMCP.convert`."""


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


class OwnServer:
    """An author's server."""

    def __init__(
        self, offers: Iterable[Offer], *, name: str, version: str, instructions: str
    ) -> None:
        registry = ToolRegistry()
        offered = Offered(partial(objection_to, ()))
        for spec in _specs(offers):
            if isinstance(spec, ToolSpec):
                registry.add(spec)
            else:
                offered.add(spec)
        self._requests = ClientRequests(Sessions(), Identity())
        self._browsing = _browsing(offered, self._requests)
        self.mcp: Server[Any] = build_server(
            registry,
            DirectCalls(registry),
            name=name,
            version=version,
            instructions=instructions or None,
            surface=Surface([FULL]),
            browsing=self._browsing,
            requests=self._requests,
            ready=anyio.lowlevel.checkpoint,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs suspended calls, and sends notifications of changes."""
        told = nullcontext() if self._browsing is None else self._browsing.running()
        async with self._requests.suspended.running(), told:
            yield


def _browsing(offered: Offered, requests: ClientRequests) -> Browsing | None:
    """Builds the handlers of resources and prompts; None if there are only tools."""
    if not (offered.resources or offered.prompts):
        return None
    from server.mcp.browsing.functions import FunctionProvider  # a server of tools starts without
    from server.mcp.browsing.provider import Browsing
    from server.mcp.profiles import Profiles

    provider = FunctionProvider(offered, requests, Profiles(dict), anyio.lowlevel.checkpoint)
    requests.changed = provider.changed
    return Browsing([provider])


def _specs(offers: Iterable[Offer]) -> Iterator[ToolSpec | Spec]:
    for offer in offers:
        if isinstance(offer, ToolSpec):
            yield offer
        elif isinstance(offer, ModuleType):
            for name, function in public_functions(offer):
                to_tool = partial(_tool_of, offer, name, function)
                yield from offered_by(function, _source(function), to_tool)
        else:
            source = _source(offer)
            to_tool = partial(FunctionToMCP.convert, offer, source=source)
            yield from offered_by(offer, source, to_tool)


def _tool_of(module: ModuleType, name: str, function: Callable[..., Any]) -> ToolSpec:
    called = to_call(module, name, function)
    options = options_of(module, name, called)
    return FunctionToMCP.convert(called, source=_source(called), **options)


def _source(function: Callable[..., Any]) -> str:
    return f"function:{function.__module__}"
