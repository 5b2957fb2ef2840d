"""The gateway: all other servers of the settings, and their tools in the registry."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import anyio
import mcp_types as types

from server.gateway_settings import ServerSettings
from server.upstream.calls import call
from server.upstream.conversion import to_spec
from server.upstream.listing import Listing
from server.upstream.upstream import Upstream
from tools.core.errors import ToolError
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

__all__ = ["Gateway"]

FIRST_WAIT = 10.0
"""Seconds that a list of tools waits for servers that never listed theirs before."""

_logger = logging.getLogger("toolcrib")


class Gateway:
    """Keeps the tools of other servers in the registry while it is running.

    Args:
        servers: Those of the settings.
        registry: Where their tools are kept.
        home: The conversation of this process, whose connections list what the servers offer.

    Attributes:
        upstreams: Each server that is enabled, by its name.
    """

    def __init__(
        self, servers: Mapping[str, ServerSettings], registry: ToolRegistry, home: str
    ) -> None:
        self.upstreams = {
            name: Upstream(name, each) for name, each in servers.items() if each.enabled
        }
        self._registry = registry
        self._home = home
        self._listed = {name: anyio.Event() for name in self.upstreams}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connects to the servers side by side, and ends the connections at the end."""
        async with anyio.create_task_group() as group:
            for upstream in self.upstreams.values():
                upstream.run_in(group)
                group.start_soon(self._keep_listed, upstream)
            yield
            group.cancel_scope.cancel()

    async def ready(self) -> None:
        """Waits until each server was listed or could not be reached, for ten seconds at most."""
        with anyio.move_on_after(FIRST_WAIT):
            for listed in self._listed.values():
                await listed.wait()

    async def _keep_listed(self, upstream: Upstream) -> None:
        try:
            listing = await upstream.refresh(self._home)
            self._put(upstream, listing)
        except ToolError as error:
            _logger.warning("%s", error.message)
        finally:
            self._listed[upstream.name].set()

    def _put(self, upstream: Upstream, listing: Listing) -> None:
        specs = [self._spec(upstream, tool) for tool in listing.tools]
        self._registry.replace_source(f"upstream:{upstream.name}", specs)

    def _spec(self, upstream: Upstream, tool: types.Tool) -> ToolSpec:
        invoke = partial(call, upstream, tool.name)
        return to_spec(upstream.name, tool, upstream.settings, invoke)
