"""An author's server: the product's handlers, serving only the author's functions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
from mcp.server.lowlevel import Server

from server.mcp.asking.client_requests import ClientRequests
from server.mcp.browsing.objections import objection_to
from server.mcp.protocol import build_server
from server.mcp.sessions import Sessions
from server.mcp.surface import FULL, Surface
from storage.models import Identity
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.public import offered_by, options_of, public_functions, to_call
from tools.core.browsing.offered import Offered, Spec
from tools.core.calling.direct import DirectCalls
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

if TYPE_CHECKING:
    from server.mcp.browsing.browsing import Browsing

Offer = Callable[..., Any] | ModuleType | ToolSpec
"""A function, a module with functions, or a tool from `FunctionToMCP.convert`."""


class OwnServer:
    """An author's server.

    Args:
        offers: The functions, modules and tools to serve.
        name: Its name, for the client.
        version: Its version.
        instructions: Instructions for models about the server as a whole.

    Attributes:
        mcp: The MCP server for transports, used within `running`.

    Raises:
        ToolDefinitionError: If a function cannot be converted; the message says what to change.
        ValueError: If two of them have the same name or address.
    """

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
        self._browsing = browsing = _browsing(offered, self._requests)
        self.mcp: Server[Any] = build_server(
            registry,
            DirectCalls(registry),
            name=name,
            version=version,
            instructions=instructions or None,
            surface=Surface([FULL]),
            resources=None if browsing is None else browsing.resources,
            prompts=None if browsing is None else browsing.prompts,
            requests=self._requests,
            ready=anyio.lowlevel.checkpoint,
            subscriptions=None if browsing is None else browsing.subscriptions,
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
    from server.mcp.browsing.browsing import browse_functions  # a server of tools starts without
    from server.mcp.browsing.handlers import Nothing
    from server.mcp.browsing.offered_calls import OfferedCalls
    from server.mcp.profiles import Profiles

    calls = OfferedCalls(requests, Profiles({}), anyio.lowlevel.checkpoint)
    own = browse_functions(offered, calls, resources=Nothing(), prompts=Nothing())
    browsing = own.browsing(())
    requests.changed = browsing.changed
    return browsing


def _specs(offers: Iterable[Offer]) -> Iterator[ToolSpec | Spec]:
    for offer in offers:
        if isinstance(offer, ToolSpec):
            yield offer
        elif isinstance(offer, ModuleType):
            for name, function in public_functions(offer):
                to_tool = partial(_tool_of, offer, name, function)
                yield from offered_by(function, _source(function), to_tool)
        else:
            yield from offered_by(offer, _source(offer), partial(_tool, offer))


def _tool_of(module: ModuleType, name: str, function: Callable[..., Any]) -> ToolSpec:
    called = to_call(module, name, function)
    options = options_of(module, name, called)
    return FunctionToMCP.convert(called, source=_source(called), **options)


def _tool(function: Callable[..., Any]) -> ToolSpec:
    return FunctionToMCP.convert(function, source=_source(function))


def _source(function: Callable[..., Any]) -> str:
    return f"function:{function.__module__}"
