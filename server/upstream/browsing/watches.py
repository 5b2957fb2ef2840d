"""Watches resources of other servers on behalf of subscribers.

Each watch is one subscription at a server, in the form of its protocol: `resources/subscribe`
until 2025-11-25, a stream of `subscriptions/listen` from 2026-07-28 on. It exists while anyone
listens, and is renewed when the connection is lost.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.subscriptions import Hear
from server.upstream.connections.connection import Connection
from server.upstream.connections.link import as_mcp_error
from server.upstream.upstream import Upstream

FIRST_DELAY = 1.0
"""Seconds before a lost watch is retried; doubles with each retry."""

LONGEST_DELAY = 60.0
PARTING_SECONDS = 5.0
"""Time for a server to confirm the end of a subscription."""

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Watched:
    """A resource of another server in one conversation."""

    upstream: Upstream
    session_id: str
    uri: str  # the server's own address


class Watches:
    """Watches resources while running."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._open: dict[Watched, _Watch] = {}
        self._ends: dict[Watched, anyio.Event] = {}

    def __len__(self) -> int:
        return len(self._open)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[TaskGroup]:
        """Runs watches in a task group, and cancels them at the end."""
        async with anyio.create_task_group() as group:
            self._group = group
            yield group
            self._group = None
            group.cancel_scope.cancel()

    async def add(self, resource: Watched, key: object, hear: Hear) -> None:
        """Registers a subscriber's callback for possible changes; a repetition has no effect."""
        watch = self._open.get(resource)
        if watch is None:
            if self._group is None:
                raise MCPError(
                    types.INTERNAL_ERROR, "Nothing can be watched: the server is shutting down."
                )
            watch = self._open[resource] = _Watch(resource)
            self._group.start_soon(self._keep, watch, self._ends.get(resource))
            self._ends[resource] = watch.ended
        watch.listeners[key] = hear
        try:
            await watch.settled.wait()
        except BaseException:
            self.remove(resource, key)
            raise
        if watch.problem is not None:
            raise watch.problem

    def remove(self, resource: Watched, key: object) -> None:
        """Removes a callback; the last one ends the subscription."""
        watch = self._open.get(resource)
        if watch is None:
            return
        watch.listeners.pop(key, None)
        if not watch.listeners:
            del self._open[resource]
            watch.scope.cancel()

    async def _keep(self, watch: _Watch, before: anyio.Event | None) -> None:
        try:
            with watch.scope:
                if before is not None:  # its end must not cancel the new subscription
                    await before.wait()
                await watch.keep()
        finally:
            if self._open.get(watch.resource) is watch:
                del self._open[watch.resource]
            if self._ends.get(watch.resource) is watch.ended:
                del self._ends[watch.resource]
            watch.ended.set()
            watch.settled.set()


class _Watch:
    """One subscription."""

    def __init__(self, resource: Watched) -> None:
        self.resource = resource
        self.listeners: dict[object, Hear] = {}
        self.scope = anyio.CancelScope()
        self.settled = anyio.Event()  # the server has accepted or rejected it
        self.ended = anyio.Event()
        self.problem: MCPError | None = None  # why it was rejected

    async def keep(self) -> None:
        """Subscribes, notifies listeners, and resubscribes after a lost connection."""
        delay = FIRST_DELAY
        while True:
            try:
                async with self._changes() as changes:
                    if self.settled.is_set():
                        await self._tell()  # changes may have been missed meanwhile
                    self.settled.set()
                    delay = FIRST_DELAY
                    async for _ in changes:
                        await self._tell()
            except Exception as error:  # noqa: BLE001  # any failure of a server
                failure = as_mcp_error(self.resource.upstream.name, error)
                if not self.settled.is_set():
                    self.problem = failure
                    return
                _logger.debug("%s is not watched at present: %s", self.resource.uri, failure)
            await anyio.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY)

    async def _tell(self) -> None:
        for hear in tuple(self.listeners.values()):
            await hear()

    @asynccontextmanager
    async def _changes(self) -> AsyncIterator[AsyncIterator[object]]:
        upstream, uri = self.resource.upstream, self.resource.uri
        async with AsyncExitStack() as stack:
            with anyio.fail_after(upstream.settings.timeout):
                connection = await upstream.connection(self.resource.session_id)
                await stack.enter_async_context(connection.used())
                watched = _listen if connection.is_modern else _subscribe
                changes = await stack.enter_async_context(watched(connection, uri))
            yield changes


@asynccontextmanager
async def _listen(connection: Connection, uri: str) -> AsyncIterator[AsyncIterator[object]]:
    """Yields changes of a resource at a server of 2026-07-28."""
    async with connection.client.listen(resource_subscriptions=[uri]) as stream:
        if not stream.honored.resource_subscriptions:
            raise MCPError(types.INVALID_PARAMS, f"Its server does not report when {uri} changes.")
        yield stream


@asynccontextmanager
async def _subscribe(connection: Connection, uri: str) -> AsyncIterator[AsyncIterator[object]]:
    """Yields changes of a resource at a server until 2025-11-25."""
    changed, changes = anyio.create_memory_object_stream[None](1)  # one pending change covers all

    def hear(notification: types.ServerNotification | None) -> None:
        if notification is None:
            changed.close()
        elif _is_about(notification, uri):
            with suppress(anyio.WouldBlock, anyio.ClosedResourceError):
                changed.send_nowait(None)

    with changed, changes, ExitStack() as stack:
        connection.listeners.add(hear)
        stack.callback(connection.listeners.discard, hear)
        subscribe = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        await connection.session.send_request(subscribe, types.EmptyResult)
        try:
            yield changes
        finally:
            if not connection.closed.is_set():
                params = types.UnsubscribeRequestParams(uri=uri)
                unsubscribe = types.UnsubscribeRequest(params=params)
                with anyio.move_on_after(PARTING_SECONDS, shield=True), suppress(MCPError):
                    await connection.session.send_request(unsubscribe, types.EmptyResult)


def _is_about(notification: types.ServerNotification, uri: str) -> bool:
    """Returns whether a notification is about a resource or one below it, as servers may send."""
    if not isinstance(notification, types.ResourceUpdatedNotification):
        return False
    changed = notification.params.uri
    return changed == uri or changed.startswith(uri.rstrip("/") + "/")
