"""Who hears that something changed: resources, and the lists of what is offered.

Until 2025-11-25 a client subscribes to resources one by one, and is told of every list; from
2026-07-28 on it opens streams that say what it wants to hear.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from server.mcp.browsing.answers import no_resource_at
from server.mcp.tasks.extension import MISSING, declares_tasks

MOST_STREAMS = 1_000
"""Streams of changes that clients may have open."""

MOST_WATCHED = 1_000
"""Resources that one client, or one stream of it, may watch."""

OPENING_SECONDS = 10.0
"""How long a stream waits for servers to agree before it says which of them have."""

Context = ServerRequestContext[Any, Any]

Hear = Callable[[], Awaitable[None]]
"""Is told that a resource may have changed."""

Unwatch = Callable[[], None]
"""Ends that."""

Admits = Callable[[Context, str], bool]
"""Whether whoever asks may see anything of a server."""

_STATE = "toolcrib.subscriber"
"""Where the SDK keeps for us, beside a client's connection, what the client subscribed to."""

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class _List:
    """A list that may change: how clients of each era are told."""

    event: ServerEvent
    notify: Callable[[Connection], Coroutine[Any, Any, None]]


_LISTS = {
    "tools": _List(ToolsListChanged(), Connection.send_tool_list_changed),
    "prompts": _List(PromptsListChanged(), Connection.send_prompt_list_changed),
    "resources": _List(ResourcesListChanged(), Connection.send_resource_list_changed),
}


@dataclass(frozen=True, slots=True)
class _Hearer:
    """Somebody who is told of changed lists, if they may see the server that changed them."""

    admits: Callable[[str], bool]
    tell: Callable[[_List], Coroutine[Any, Any, None]]


class Watcher(Protocol):
    """Knows when resources of some kind change."""

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Has somebody told when a resource may have changed, from the return on.

        Args:
            ctx: Their request.
            uri: The address.
            who: They; the same again changes nothing.
            hear: How they are told.

        Returns:
            What ends that; None if it is no resource of this kind.
        """


class Subscriptions:
    """Answers resources/subscribe, resources/unsubscribe and subscriptions/listen.

    Args:
        lists: Which lists change: of tools, prompts and resources.
        watchers: Those who know when resources change, in the order in which they are asked.
        admits: Who may see which of the other servers.

    Attributes:
        lists: The same.
    """

    def __init__(self, lists: Collection[str], watchers: Sequence[Watcher], admits: Admits) -> None:
        self.lists = lists
        self._watchers = watchers
        self._admits = admits
        self._hearers: dict[object, _Hearer] = {}
        self._streams = 0
        self._group: TaskGroup | None = None
        self._forget_tools: Callable[[], None] = _nothing

    @property
    def held(self) -> int:
        """How many clients hear of lists."""
        return len(self._hearers)

    def register(self, server: Server[Any], forget_tools: Callable[[], None]) -> None:
        """Has a server ask here.

        Args:
            server: The server.
            forget_tools: Has its list of tools taken anew.
        """
        self._forget_tools = forget_tools
        server.add_request_handler(
            "resources/subscribe", types.SubscribeRequestParams, self.subscribe
        )
        server.add_request_handler(
            "resources/unsubscribe", types.UnsubscribeRequestParams, self.unsubscribe
        )
        server.add_request_handler(
            "subscriptions/listen", types.SubscriptionsListenRequestParams, self.listen
        )
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self.initialized
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Has clients told in the background."""
        async with anyio.create_task_group() as group:
            self._group = group
            yield
            self._group = None
            group.cancel_scope.cancel()

    def changed(self, server: str, kinds: Collection[str]) -> None:
        """Tells everybody who may see a server that lists changed by it.

        Args:
            server: Its name; empty for what is ours.
            kinds: Which of its lists changed.
        """
        changed = sorted(set(kinds).intersection(self.lists))
        if "tools" in changed:
            self._forget_tools()
        if self._group is None:
            return
        for kind in changed:
            for hearer in tuple(self._hearers.values()):
                if not server or hearer.admits(server):
                    self._group.start_soon(hearer.tell, _LISTS[kind])

    async def initialized(self, ctx: Context, _params: types.NotificationParams) -> None:
        """From now on a client until 2025-11-25 may be told of changed lists."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            client = self._client(ctx)
            self._hearers[client] = _Hearer(partial(self._admits, ctx), client.tell)

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Has a client until 2025-11-25 told when a resource changes."""
        client = self._client(ctx)
        if len(client.watched) >= MOST_WATCHED:
            raise MCPError(types.INVALID_PARAMS, f"At most {MOST_WATCHED} resources are watched.")
        if params.uri not in client.watched:
            hear = partial(self._tell_updated, client, params.uri)
            client.watched[params.uri] = await self._watch(ctx, params.uri, client, hear)
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Has a client told no more; nothing happens where it was not."""
        client = self._client(ctx)
        unwatch = client.watched.pop(params.uri, None)
        if unwatch is not None:
            unwatch()
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """One stream of changes of a client from 2026-07-28 on."""
        if "taskIds" in (params.notifications.model_extra or {}) and not declares_tasks(ctx):
            raise MISSING
        if self._streams >= MOST_STREAMS:
            raise MCPError(types.INTERNAL_ERROR, f"At most {MOST_STREAMS} streams are open.")
        bus = InMemorySubscriptionBus()
        self._streams += 1
        with ExitStack() as stack:
            stack.callback(self._stream_ended)
            wanted = await self._open(ctx, params.notifications, bus, stack)
            return await ListenHandler(bus)(
                ctx, params.model_copy(update={"notifications": wanted})
            )

    def _stream_ended(self) -> None:
        self._streams -= 1

    async def _open(
        self,
        ctx: Context,
        wanted: types.SubscriptionFilter,
        bus: InMemorySubscriptionBus,
        stack: ExitStack,
    ) -> types.SubscriptionFilter:
        """Fills the bus with what a stream wants to hear, and says what of it there is."""
        hearer = _Hearer(partial(self._admits, ctx), lambda changed: bus.publish(changed.event))
        self._hearers[bus] = hearer
        stack.callback(self._hearers.pop, bus)
        watched: set[str] = set()

        async def watch(uri: str) -> None:
            try:
                hear = partial(bus.publish, ResourceUpdated(uri))
                stack.callback(await self._watch(ctx, uri, bus, hear))
                watched.add(uri)
            except MCPError as error:
                _logger.debug("%s is not watched: %s", uri, error)

        uris = list(dict.fromkeys(wanted.resource_subscriptions or ()))[:MOST_WATCHED]
        with anyio.move_on_after(OPENING_SECONDS):
            async with anyio.create_task_group() as group:
                for uri in uris:
                    group.start_soon(watch, uri)
        return types.SubscriptionFilter(
            tools_list_changed=wanted.tools_list_changed and "tools" in self.lists,
            prompts_list_changed=wanted.prompts_list_changed and "prompts" in self.lists,
            resources_list_changed=wanted.resources_list_changed and "resources" in self.lists,
            resource_subscriptions=[uri for uri in uris if uri in watched],
        )

    async def _watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch:
        for watcher in self._watchers:
            unwatch = await watcher.watch(ctx, uri, who, hear)
            if unwatch is not None:
                return unwatch
        raise no_resource_at(uri, ctx)

    async def _tell_updated(self, client: _Client, uri: str) -> None:
        """Tells a client in the background: one that does not read holds nobody else up."""
        if self._group is not None:
            self._group.start_soon(client.tell_updated, uri)

    def _client(self, ctx: Context) -> _Client:
        """What is known of the client of a connection; forgotten when that ends."""
        connection = ctx.session._connection  # noqa: SLF001  # the only way to what outlives a request
        found = connection.state.get(_STATE)
        if found is None:
            found = connection.state[_STATE] = _Client(connection)
            connection.exit_stack.callback(self._forget, found)
        return found

    def _forget(self, client: _Client) -> None:
        self._hearers.pop(client, None)
        for unwatch in client.watched.values():
            unwatch()


def _nothing() -> None:
    """Before there is a server, nobody was shown anything."""


class _Client:
    """A client until 2025-11-25.

    Attributes:
        connection: The way to it.
        watched: What ends that it is told of a resource, by the addresses that it asked for.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.watched: dict[str, Unwatch] = {}
        self._waiting: set[str] = set()

    async def tell(self, changed: _List) -> None:
        """Tells it that a list changed."""
        kind = type(changed.event).__name__
        await self._once(kind, partial(changed.notify, self.connection))

    async def tell_updated(self, uri: str) -> None:
        """Tells it that a resource changed."""
        await self._once(uri, partial(self.connection.send_resource_updated, uri))

    async def _once(self, what: str, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Tells it of something; a client that does not read hears of that once."""
        if what not in self._waiting:
            self._waiting.add(what)
            try:
                await tell()
            finally:
                self._waiting.discard(what)
