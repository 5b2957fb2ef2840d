"""The gateway: connects to all other servers and registers their tools."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from server.settings.gateway import ServerSettings
from server.upstream.calling.calls import call
from server.upstream.connections.cached import Cached
from server.upstream.connections.changes import Changes
from server.upstream.connections.connection import Callbacks, MakeCallbacks
from server.upstream.connections.listing import Kind, Listing
from server.upstream.connections.opening import Opener
from server.upstream.connections.transport import Transports
from server.upstream.safety.admission import Admission
from server.upstream.skills.held_skills import HeldSkills
from server.upstream.upstream import Upstream
from tools.agent.skillfiles.skill import Skill
from tools.conversion.naming import SEPARATOR
from tools.core.context import RequestContext
from tools.core.errors import UnavailableError
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult

FIRST_WAIT = 10.0
"""Seconds that a list of tools waits for servers without an earlier listing."""

LEAVE_SECONDS = 2.5
"""Time for closing all sessions; then programs are killed."""

SWEEP_SECONDS = 60.0

ASK_AGAIN_SECONDS = 60.0
"""Time before a server without a listing is asked again."""

OnChange = Callable[[str, frozenset[Kind]], None]
"""Receives the server and the kinds of a changed listing."""

_logger = logging.getLogger("toolcrib")


def _no_callbacks(_server: str, _session_id: str) -> Callbacks:
    return Callbacks()


class Gateway:
    """Registers the tools of other servers while running.

    Args:
        servers: The servers in the settings.
        registry: The registry for their tools.
        home: The conversation of this process; its connections list the servers.
        admission: Admits their tools to the registry.
        transports: Builds the links.
        cached: Stores their listings; None stores none.
        skills: Their skills; None for none.
        make_callbacks: Builds the handlers of their requests and notifications.
        before_home: Awaited before connecting for this process itself.
        command: How the user types `toolcrib`, for advice in error messages.

    Attributes:
        upstreams: The enabled servers by name.
    """

    def __init__(  # noqa: PLR0913  # what the composition root hands over
        self,
        servers: Mapping[str, ServerSettings],
        registry: ToolRegistry,
        home: str,
        *,
        admission: Admission,
        transports: Transports,
        cached: Cached | None = None,
        skills: HeldSkills | None = None,
        make_callbacks: MakeCallbacks = _no_callbacks,
        before_home: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint,
        command: str = "toolcrib",
    ) -> None:
        self.upstreams = {
            name: Upstream(
                name,
                each,
                Opener(name, each, transports, make_callbacks),
                home,
                command=command,
            )
            for name, each in servers.items()
            if each.enabled
        }
        self._registry = registry
        self._admission = admission
        self._transports = transports
        self._cached = cached
        self._skills = skills
        self._before_home = before_home
        self._listeners: list[OnChange] = []
        self._runs = False
        self._loaded = anyio.Event()
        self._settled = {name: anyio.Event() for name in self.upstreams}
        """Set once a server was listed, has a cached listing, or is unreachable."""
        self._listed = {name: anyio.Event() for name in self.upstreams}
        """Set once this process has tried to list a server."""

    @asynccontextmanager
    async def running(self, *, eager: bool = True) -> AsyncIterator[None]:
        """Connects to the servers in parallel; closes the connections at the end.

        Args:
            eager: Whether to connect at once, except to lazy servers; otherwise on first use.
        """
        if not self.upstreams:
            yield
            return
        try:
            async with anyio.create_task_group() as connections:
                async with anyio.create_task_group() as keepers:
                    self._start(keepers, connections, eager=eager)
                    yield
                    keepers.cancel_scope.cancel()  # prevents reconnects
                await self._leave()
                connections.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._transports.aclose()

    def skills(self) -> Sequence[Skill]:
        """Returns the servers' skills; the same object until one changes. Blocks."""
        return () if self._skills is None else self._skills.offered()

    def on_change(self, listener: OnChange) -> None:
        """Registers a listener for changes, called once the new listing is in place."""
        self._listeners.append(listener)

    async def ready(self) -> None:
        """Waits up to ten seconds until each server is listed or unreachable.

        Cached listings count, and lazy servers are not waited for.
        """
        if not self._runs:
            return
        with anyio.move_on_after(FIRST_WAIT):
            await self._loaded.wait()
            for settled in self._settled.values():
                await settled.wait()

    async def find(self, name: str) -> None:
        """Ensures that a tool is registered if its server has it.

        Connects to servers without a listing: the one whose name begins the given name, otherwise
        all.

        Args:
            name: The called name: `server__tool`, or a bare name.
        """
        if not self._runs:
            return
        await self._loaded.wait()
        if self._registry.get(name) is not None:
            return
        named = self.upstreams.get(name.partition(SEPARATOR)[0]) if SEPARATOR in name else None
        wanted = self.upstreams.values() if named is None else (named,)
        with anyio.move_on_after(FIRST_WAIT):
            async with anyio.create_task_group() as group:
                for upstream in wanted:
                    is_known = upstream.listing is not None and upstream is not named
                    if not (is_known or self._listed[upstream.name].is_set()):
                        group.start_soon(self._list_now, upstream)

    def _start(self, keepers: TaskGroup, connections: TaskGroup, *, eager: bool) -> None:
        self._runs = True
        for upstream in self.upstreams.values():
            upstream.run_in(connections)
        keepers.start_soon(self._load)
        for upstream in self.upstreams.values():
            starts = eager and not upstream.settings.lazy
            if not starts:
                self._settled[upstream.name].set()
            keepers.start_soon(partial(self._keep, upstream, starts=starts))
        keepers.start_soon(self._sweep)
        keepers.start_soon(self._admission.watch)

    async def _leave(self) -> None:
        with anyio.move_on_after(LEAVE_SECONDS, shield=True):
            for upstream in self.upstreams.values():
                upstream.close()
            for upstream in self.upstreams.values():
                await upstream.closed()

    async def _load(self) -> None:
        """Loads the cached listings of the servers."""
        try:
            if self._cached is not None:
                for upstream in self.upstreams.values():
                    listing = await self._cached.get(upstream.name, upstream.settings)
                    if listing is not None:
                        await self._take(upstream, listing)
        finally:
            self._loaded.set()

    async def _keep(self, upstream: Upstream, *, starts: bool) -> None:
        """Keeps a server's listing up to date while running."""
        if starts:
            await self._before_home()
        await self._loaded.wait()
        while True:
            try:
                connection = await upstream.next_connection(starts=starts)
                changes = Changes(connection)
                async with changes.heard():
                    patience = math.inf
                    while await changes.next(patience):
                        known = await self._refresh(upstream)
                        patience = math.inf if known else ASK_AGAIN_SECONDS
            except UnavailableError as error:
                _logger.warning("%s", error.message)
            self._settled[upstream.name].set()
            self._listed[upstream.name].set()
            if starts:
                await upstream.may_be_tried()

    async def _list_now(self, upstream: Upstream) -> None:
        """Connects to a server, so that its listing is requested."""
        try:
            await upstream.next_connection(starts=True)
        except UnavailableError as error:
            _logger.warning("%s", error.message)
        else:
            await self._listed[upstream.name].wait()

    async def _refresh(self, upstream: Upstream) -> bool:
        """Lists a server; returns whether that succeeded."""
        listing = await upstream.refresh()
        if listing is not None:
            changed = await self._take(upstream, listing)
            if changed and self._cached is not None:
                with anyio.CancelScope(shield=True):  # the next start may need it
                    await self._cached.put(upstream.name, upstream.settings, listing)
        self._settled[upstream.name].set()
        self._listed[upstream.name].set()
        return listing is not None

    async def _take(self, upstream: Upstream, listing: Listing) -> bool:
        """Replaces a server's listing and notifies listeners; returns whether it changed."""
        changed = listing.differs_from(upstream.listing)
        if "tools" in changed:
            invoke = partial(partial, self._call, upstream)  # by the server's own name
            await self._admission.put(upstream.name, upstream.settings, listing.tools, invoke)
        if self._skills is not None and "resources" in changed:
            self._skills.put(upstream, listing.skills)
        upstream.offers(listing)  # its tools are registered by now
        self._settled[upstream.name].set()
        if changed:
            for listener in self._listeners:
                listener(upstream.name, changed)
        return bool(changed)

    async def _call(
        self,
        upstream: Upstream,
        own_name: str,
        arguments: dict[str, Any],
        context: RequestContext,
    ) -> ToolResult:
        """Calls a tool; lists its server first if only a cached definition is known.

        Checks again that it may be called: an approval may have taken long.
        """
        listed = self._listed[upstream.name]
        if not listed.is_set():
            await upstream.connection(context.session_id)  # connecting triggers the listing
            with anyio.move_on_after(upstream.settings.start_timeout):
                await listed.wait()
        self._admission.check(upstream.name, own_name, context.tool_set)
        return await call(upstream, own_name, arguments, context)

    async def _sweep(self) -> None:
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            for upstream in self.upstreams.values():
                upstream.close_idle()
