"""The gateway: connects to all other servers and registers their tools."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.settings.gateway import ServerSettings
from server.upstream.calling.calls import KeptAnswers, caller_of
from server.upstream.connections.connect import Opener, Transports
from server.upstream.connections.connection import Callbacks, MakeCallbacks
from server.upstream.connections.link import problem_of
from server.upstream.connections.listing import Cached, Changes, Kind, Listing, list_all
from server.upstream.held_skills import HeldSkills
from server.upstream.safety.admission import Admission
from server.upstream.upstream import Upstream
from tools.agent.skillfiles.skill import Skill
from tools.conversion.naming import SEPARATOR
from tools.core.errors import ToolError, UnavailableError
from tools.core.registry import ToolRegistry

FIRST_WAIT = 10.0
"""Seconds after the start in which lists and searches of tools wait for servers never listed."""

LEAVE_SECONDS = 2.5
"""Time for closing all sessions; then programs are killed."""

SWEEP_SECONDS = 60.0

ASK_AGAIN_SECONDS = 60.0
"""Time before a server without a listing is asked again."""

OnChange = Callable[[str, frozenset[Kind]], None]
"""Receives the server and the kinds of a changed listing."""

_logger = logging.getLogger("toolcrib")


class Gateway:
    """Registers the tools of other servers while running."""

    def __init__(  # noqa: PLR0913  # what the composition root hands over
        self,
        servers: Mapping[str, ServerSettings],
        registry: ToolRegistry,
        home: str,  # the conversation of this process, whose connections list the servers
        *,
        shared_home: str = "",  # the same for servers that serve no single conversation
        admission: Admission,
        transports: Transports,
        cached: Cached | None = None,
        skills: HeldSkills | None = None,
        make_callbacks: MakeCallbacks = lambda _server, _session_id: Callbacks(),
        before_home: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint,  # connecting it
        command: str = "toolcrib",  # as the user types it, for advice in error messages
    ) -> None:

        def make(name: str, settings: ServerSettings) -> Upstream:
            own = home if settings.sessions == "per_conversation" else shared_home or home
            return Upstream(Opener(name, settings, transports, make_callbacks), own, command)

        self._make = make
        self.upstreams = {  # the enabled servers
            name: make(name, each) for name, each in servers.items() if each.enabled
        }
        self._kept: WeakKeyDictionary[Upstream, KeptAnswers] = WeakKeyDictionary()
        self._registry = registry
        self._admission = admission
        self._transports = transports
        self._cached = cached
        self._skills = skills
        self._before_home = before_home
        self._listeners: list[OnChange] = []
        self._runs = False
        self._loaded = anyio.Event()
        self._wait_ends = math.inf

    @asynccontextmanager
    async def running(self, *, eager: bool = True) -> AsyncIterator[None]:
        """Connects to the servers in parallel; closes the connections at the end.

        If it is eager, it connects at once, except to lazy servers; otherwise on first use.
        """
        try:
            async with anyio.create_task_group() as connections:
                async with anyio.create_task_group() as keepers:
                    self._join = partial(self._keep_in, keepers, connections, eager=eager)
                    self._start(keepers)
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

    def end(self, session_id: str) -> None:
        """Closes the connections of a conversation that has ended."""
        for upstream in self.upstreams.values():
            upstream.end(session_id)

    async def ready(self, awaits: Callable[[str], bool] = lambda _server: True) -> None:
        """Waits until some servers, by default all, are listed or unreachable.

        It waits only in the first ten seconds, so that a hanging server does not delay later
        requests. Cached listings count, and lazy servers are not waited for.
        """
        if not self._runs:
            return
        with anyio.CancelScope(deadline=self._wait_ends):
            await self._loaded.wait()
            for upstream in self.upstreams.values():
                if awaits(upstream.name):
                    await upstream.settled.wait()

    async def find(self, name: str) -> None:
        """Ensures that a tool is registered if its server has it.

        Connects to servers without a listing: the one whose name begins the given name, otherwise
        all.
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
                    if not (is_known or upstream.listed.is_set()):
                        group.start_soon(self._list_now, upstream)

    async def change(self, servers: Mapping[str, ServerSettings]) -> None:
        """Replaces the servers while running: those with the same settings stay connected."""
        await self._loaded.wait()
        enabled = {name: each for name, each in servers.items() if each.enabled}
        before = self.upstreams
        self.upstreams = {
            name: known
            if (known := before.get(name)) and known.settings == each
            else self._make(name, each)
            for name, each in enabled.items()
        }
        for name, upstream in before.items():
            if self.upstreams.get(name) is not upstream:
                upstream.stop()
                await self._take(upstream, Listing())
        for name, upstream in self.upstreams.items():
            if before.get(name) is not upstream:
                await self._load_cached(upstream)
                self._join(upstream)

    def _start(self, keepers: TaskGroup) -> None:
        self._runs = True
        self._wait_ends = anyio.current_time() + FIRST_WAIT
        keepers.start_soon(self._load)
        for upstream in self.upstreams.values():
            self._join(upstream)
        keepers.start_soon(self._sweep)
        keepers.start_soon(self._admission.watch)

    def _keep_in(
        self, keepers: TaskGroup, connections: TaskGroup, upstream: Upstream, *, eager: bool
    ) -> None:
        upstream.run_in(connections)
        starts = eager and not upstream.settings.lazy
        if not starts:
            upstream.settled.set()
        keepers.start_soon(partial(self._keep, upstream, starts=starts))

    async def _leave(self) -> None:
        with anyio.move_on_after(LEAVE_SECONDS, shield=True):
            connections = [
                each for upstream in self.upstreams.values() for each in upstream.all_connections
            ]
            for each in connections:
                each.close()
            for each in connections:
                await each.closed.wait()

    async def _load(self) -> None:
        """Loads the cached listings of the servers."""
        try:
            for upstream in self.upstreams.values():
                await self._load_cached(upstream)
        finally:
            self._loaded.set()

    async def _load_cached(self, upstream: Upstream) -> None:
        if self._cached is not None:
            listing = await self._cached.get(upstream.name, upstream.settings)
            if listing is not None:
                await self._take(upstream, listing)

    async def _keep(self, upstream: Upstream, *, starts: bool) -> None:
        """Keeps a server's listing up to date while running."""
        assert upstream.keeping is not None  # noqa: S101  # set by run_in
        with upstream.keeping:
            if starts:
                await self._before_home()
            await self._loaded.wait()
            await self._keep_on(upstream, starts=starts)

    async def _keep_on(self, upstream: Upstream, *, starts: bool) -> None:
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
            upstream.settled.set()
            upstream.listed.set()
            if starts:
                await upstream.due()

    async def _list_now(self, upstream: Upstream) -> None:
        """Connects to a server, so that its listing is requested."""
        try:
            await upstream.next_connection(starts=True)
        except UnavailableError as error:
            _logger.warning("%s", error.message)
        else:
            await upstream.listed.wait()

    async def _refresh(self, upstream: Upstream) -> bool:
        """Lists a server; returns whether that succeeded, and logs why not."""
        connection = upstream.home
        try:
            if connection is None:
                return False
            async with connection.used():
                listing = await list_all(connection)
        except (MCPError, ToolError, TimeoutError, ValidationError) as error:
            problem = await problem_of(error, None)
            _logger.warning("The server %r could not be listed: %s.", upstream.name, problem)
            return False
        else:
            changed = await self._take(upstream, listing)
            if changed and self._cached is not None:
                with anyio.CancelScope(shield=True):  # the next start may need it
                    await self._cached.put(upstream.name, upstream.settings, listing)
            return True
        finally:
            upstream.settled.set()
            upstream.listed.set()

    async def _take(self, upstream: Upstream, listing: Listing) -> bool:
        """Replaces a server's listing and notifies listeners; returns whether it changed."""
        changed = listing.differs_from(upstream.listing)
        if "tools" in changed:
            kept = self._kept.setdefault(upstream, KeptAnswers(upstream.settings))
            kept.forget()
            invoke = partial(caller_of, upstream, self._registry, kept)
            await self._admission.put(upstream.name, upstream.settings, listing.tools, invoke)
        if self._skills is not None and "resources" in changed:
            self._skills.put(upstream, listing.skills)
        upstream.offers(listing)  # its tools are registered by now
        upstream.settled.set()
        if changed:
            for listener in self._listeners:
                listener(upstream.name, changed)
        return bool(changed)

    async def _sweep(self) -> None:
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            for upstream in self.upstreams.values():
                upstream.close_idle()
