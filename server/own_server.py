"""The server of an author's functions: the product's handlers, on nothing but these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import anyio.lowlevel
from mcp.server.lowlevel import Server

from server.mcp.asking.client_requests import ClientRequests
from server.mcp.protocol import build_server
from server.mcp.sessions import Sessions
from server.mcp.surface import FULL, Surface
from storage.models import Identity
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.public import public_functions, to_call
from tools.core.direct import DirectCalls
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

__all__ = ["Offer", "OwnServer"]

Offer = Callable[..., Any] | ModuleType | ToolSpec
"""A function, a module with functions, or a tool that `FunctionToMCP.convert` made."""


@dataclass(frozen=True, slots=True)
class OwnServer:
    """An author's server.

    Attributes:
        mcp: What every transport runs, within `running`.
        running: Has calls go on while their clients answer what they asked.
    """

    mcp: Server[Any]
    running: AbstractAsyncContextManager[None]

    @classmethod
    def of(
        cls, offers: Iterable[Offer], *, name: str, version: str, instructions: str
    ) -> OwnServer:
        """Makes it.

        Args:
            offers: What it offers.
            name: Its name, for the client.
            version: Its version.
            instructions: What a model should know of it as a whole.

        Raises:
            ToolDefinitionError: If a function cannot be converted; it says what to change.
            ValueError: If two of them have one name.
        """
        registry = _registry_of(offers)
        requests = ClientRequests(Sessions(), Identity())
        server = build_server(
            registry,
            DirectCalls(registry),
            name=name,
            version=version,
            instructions=instructions or None,
            surface=Surface([FULL]),
            resources=None,
            prompts=None,
            requests=requests,
            ready=anyio.lowlevel.checkpoint,
        )
        return cls(server, requests.suspended.running())


def _registry_of(offers: Iterable[Offer]) -> ToolRegistry:
    """The tools that are offered.

    Raises:
        ToolDefinitionError: If a function cannot be converted; it says what to change.
        ValueError: If two of them have one name.
    """
    registry = ToolRegistry()
    for offer in offers:
        for spec in _specs(offer):
            registry.add(spec)
    return registry


def _specs(offer: Offer) -> Iterator[ToolSpec]:
    if isinstance(offer, ToolSpec):
        yield offer
    elif isinstance(offer, ModuleType):
        for name, function in public_functions(offer):
            yield _converted(to_call(offer, name, function))
    else:
        yield _converted(offer)


def _converted(function: Callable[..., Any]) -> ToolSpec:
    return FunctionToMCP.convert(function, source=f"function:{function.__module__}")
