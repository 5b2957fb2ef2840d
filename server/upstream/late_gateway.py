"""The gateway, built once the settings name another server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio.lowlevel

if TYPE_CHECKING:
    from server.settings.gateway import ServerSettings
    from server.upstream.gateway import Gateway, OnChange
    from server.upstream.upstream import Upstream
    from tools.agent.skillfiles.skill import Skill


class LateGateway:
    """A gateway that loads the code for connections only if there are servers."""

    def __init__(
        self,
        servers: Mapping[str, ServerSettings],
        allow: Callable[[Mapping[str, ServerSettings]], Mapping[str, ServerSettings]],
        make: Callable[[Mapping[str, ServerSettings]], Gateway],
    ) -> None:
        self._allow, self._make = allow, make
        servers = allow(servers)
        self._gateway = make(servers) if servers else None
        self._listeners: list[OnChange] = []
        self._joins: list[Callable[[], AbstractAsyncContextManager[None]]] = []

    @property
    def is_built(self) -> bool:
        """True if there is or was a server."""
        return self._gateway is not None

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """The enabled servers."""
        return {} if self._gateway is None else self._gateway.upstreams

    @asynccontextmanager
    async def running(self, *, eager: bool = True) -> AsyncIterator[None]:
        """Connects to the servers; see `Gateway.running`."""
        async with AsyncExitStack() as stack:
            if self._gateway is not None:
                await stack.enter_async_context(self._gateway.running(eager=eager))
            yield

    async def change(self, servers: Mapping[str, ServerSettings], stack: AsyncExitStack) -> None:
        """Replaces the servers while running; a gateway that must be built runs in the stack."""
        servers = self._allow(servers)
        if self._gateway is not None:
            await self._gateway.change(servers)
        elif servers:
            self._gateway = self._make(servers)
            for listener in self._listeners:
                self._gateway.on_change(listener)
            await stack.enter_async_context(self._gateway.running())
            for join in self._joins:
                await stack.enter_async_context(join())

    def when_built(self, join: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        """Registers what runs with a gateway that is built while running."""
        self._joins.append(join)

    def skills(self) -> Sequence[Skill]:
        """Returns the servers' skills; the same object until one changes. Blocks."""
        return () if self._gateway is None else self._gateway.skills()

    def on_change(self, listener: OnChange) -> None:
        """Registers a listener for changed listings."""
        self._listeners.append(listener)
        if self._gateway is not None:
            self._gateway.on_change(listener)

    def end(self, session_id: str) -> None:
        """Closes the connections of a conversation that has ended."""
        if self._gateway is not None:
            self._gateway.end(session_id)

    async def ready(self, awaits: Callable[[str], bool] = lambda _server: True) -> None:
        """Waits until some servers are listed or unreachable; see `Gateway.ready`."""
        if self._gateway is not None:
            await self._gateway.ready(awaits)
        else:
            await anyio.lowlevel.checkpoint()

    async def find(self, name: str) -> None:
        """Ensures that a tool is registered if its server has it."""
        if self._gateway is not None:
            await self._gateway.find(name)
        else:
            await anyio.lowlevel.checkpoint()
