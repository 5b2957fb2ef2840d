"""Notifies clients of changes: of resources, and of the lists on offer.

Until 2025-11-25 clients subscribe to single resources, and are notified of every list. From
2026-07-28 on they open streams for chosen notifications.
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
from server.mcp.tasks import MISSING, declares_tasks

MOST_STREAMS = 1_000
"""Maximum number of open streams."""

MOST_WATCHED = 1_000
"""Maximum number of watched resources per client or stream."""

OPENING_SECONDS = 10.0
"""Time that a stream waits for servers to accept its subscriptions."""

Context = ServerRequestContext[Any, Any]

Hear = Callable[[], Awaitable[None]]
"""Called when a resource may have changed."""

Unwatch = Callable[[], None]
"""Ends a watch."""

Admits = Callable[[Context, str], bool]
"""Returns whether a client may see a server."""

_STATE = "toolcrib.subscriber"
"""Key in the SDK's connection state for the client's subscriptions."""

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class _List:
    """A list that may change, with its notifications in both eras."""

    event: ServerEvent
    notify: Callable[[Connection], Coroutine[Any, Any, None]]


_LISTS = {
    "tools": _List(ToolsListChanged(), Connection.send_tool_list_changed),
    "prompts": _List(PromptsListChanged(), Connection.send_prompt_list_changed),
    "resources": _List(ResourcesListChanged(), Connection.send_resource_list_changed),
}


@dataclass(frozen=True, slots=True)
class _Subscriber:
    """A subscriber to changed lists, limited to servers that it may see."""

    admits: Callable[[str], bool]
    tell: Callable[[_List], Coroutine[Any, Any, None]]


class Watcher(Protocol):
    """Detects changes of one kind of resource."""

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Registers a callback for possible changes of a resource, once for each `who`.

        Returns a function that ends the watch; None if this is not such a resource.
        """


class Subscriptions:
    """Handles resources/subscribe, resources/unsubscribe and subscriptions/listen.

    The watchers are asked in their order. `admits` returns whether a client may see a server.
    """

    def __init__(self, lists: Collection[str], watchers: Sequence[Watcher], admits: Admits) -> None:
        self.lists = lists  # those that change: of tools, prompts and resources
        self._watchers = watchers
        self._admits = admits
        self._subscribers: dict[object, _Subscriber] = {}
        self._streams = 0
        self._group: TaskGroup | None = None
        self._forget_tools: Callable[[], None] = _nothing

    @property
    def subscriber_count(self) -> int:
        """The number of subscribers to lists."""
        return len(self._subscribers)

    def register(self, server: Server[Any], forget_tools: Callable[[], None]) -> None:
        """Registers the handlers with a server; `forget_tools` clears its cached lists of tools."""
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
        """Sends notifications in the background."""
        async with anyio.create_task_group() as group:
            self._group = group
            yield
            self._group = None
            group.cancel_scope.cancel()

    def changed(self, server: str, kinds: Collection[str]) -> None:
        """Notifies subscribers of changed lists, if they may see the server; "" is our own."""
        changed = sorted(set(kinds).intersection(self.lists))
        if "tools" in changed:
            self._forget_tools()
        if self._group is None:
            return
        for kind in changed:
            for subscriber in tuple(self._subscribers.values()):
                if not server or subscriber.admits(server):
                    self._group.start_soon(subscriber.tell, _LISTS[kind])

    async def initialized(self, ctx: Context, _params: types.NotificationParams) -> None:
        """Starts notifying a client until 2025-11-25 of changed lists."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            client = self._client(ctx)
            self._subscribers[client] = _Subscriber(partial(self._admits, ctx), client.tell)

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Subscribes a client until 2025-11-25 to a resource."""
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
        """Ends a subscription; has no effect without one."""
        client = self._client(ctx)
        unwatch = client.watched.pop(params.uri, None)
        if unwatch is not None:
            unwatch()
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serves a stream of changes to a client from 2026-07-28 on."""
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
        """Subscribes a stream's bus; returns the subscriptions that were accepted."""
        subscriber = _Subscriber(
            partial(self._admits, ctx), lambda changed: bus.publish(changed.event)
        )
        self._subscribers[bus] = subscriber
        stack.callback(self._subscribers.pop, bus)
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
        """Notifies a client in the background, so that a slow one delays no other."""
        if self._group is not None:
            self._group.start_soon(client.tell_updated, uri)

    def _client(self, ctx: Context) -> _Client:
        """Returns the state of a connection's client, dropped when the connection ends."""
        connection = ctx.session._connection  # noqa: SLF001  # the only way to what outlives a request
        found = connection.state.get(_STATE)
        if found is None:
            found = connection.state[_STATE] = _Client(connection)
            connection.exit_stack.callback(self._forget, found)
        return found

    def _forget(self, client: _Client) -> None:
        self._subscribers.pop(client, None)
        for unwatch in client.watched.values():
            unwatch()


def _nothing() -> None:
    """Has no effect before a server is registered."""


class _Client:
    """A client until 2025-11-25."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.watched: dict[str, Unwatch] = {}  # functions that end its subscriptions, by address
        self._waiting: set[str] = set()

    async def tell(self, changed: _List) -> None:
        """Notifies it that a list changed."""
        kind = type(changed.event).__name__
        await self._once(kind, partial(changed.notify, self.connection))

    async def tell_updated(self, uri: str) -> None:
        """Notifies it that a resource changed."""
        await self._once(uri, partial(self.connection.send_resource_updated, uri))

    async def _once(self, what: str, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Sends a notification unless the same one is still waiting to be read."""
        if what not in self._waiting:
            self._waiting.add(what)
            try:
                await tell()
            finally:
                self._waiting.discard(what)
