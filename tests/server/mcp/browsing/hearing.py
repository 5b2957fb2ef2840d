"""Clients of either era that hear of changes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from server.app import App

__all__ = ["Heard", "listening", "subscribe"]


class Heard:
    """What a client of either era is told, in the form of the newer one."""

    def __init__(self) -> None:
        self._events: list[ServerEvent] = []
        self._more = anyio.Event()

    @property
    def updates(self) -> list[ServerEvent]:
        return [each for each in self._events if isinstance(each, ResourceUpdated)]

    @property
    def lists(self) -> list[ServerEvent]:
        return [each for each in self._events if not isinstance(each, ResourceUpdated)]

    async def take(self, message: Any) -> None:
        match message:
            case types.ResourceUpdatedNotification(params=params):
                self.put(ResourceUpdated(str(params.uri)))
            case types.ResourceListChangedNotification():
                self.put(ResourcesListChanged())
            case types.PromptListChangedNotification():
                self.put(PromptsListChanged())
            case types.ToolListChangedNotification():
                self.put(ToolsListChanged())

    async def listen(self, stream: Any) -> None:
        async for event in stream:
            self.put(event)

    def put(self, event: ServerEvent) -> None:
        self._events.append(event)
        self._more.set()

    async def next(self) -> ServerEvent:
        with anyio.fail_after(30):
            while not self._events:
                await self._another()
        return self._events.pop(0)

    async def several(self, count: int) -> set[ServerEvent]:
        return {await self.next() for _ in range(count)}

    async def update(self, uri: str) -> None:
        """Waits for the next change of a resource, which has to be of this one."""
        with anyio.fail_after(20):
            while not self.updates:
                await self._another()
        first = self.updates[0]
        self._events.remove(first)
        assert first == ResourceUpdated(uri)

    async def changed(self, event: ServerEvent) -> None:
        """Waits until it was told that a list changed, and forgets what it was told of lists."""
        with anyio.fail_after(20):
            while event not in self.lists:
                await self._another()
        self._events = self.updates

    async def _another(self) -> None:
        await self._more.wait()
        self._more = anyio.Event()


@asynccontextmanager
async def listening(app: App, mode: str, *uris: str) -> AsyncIterator[tuple[Client, Heard]]:
    """A client that hears of some resources and of every list, as its era has it."""
    await app.functions.loaded()
    heard = Heard()
    handler = heard.take if mode == "legacy" else None
    async with Client(app.server, mode=mode, cache=None, message_handler=handler) as client:
        if mode == "legacy":
            for uri in uris:
                await subscribe(client, uri)
            yield client, heard
            return
        async with (
            anyio.create_task_group() as group,
            client.listen(
                resource_subscriptions=uris,
                prompts_list_changed=True,
                resources_list_changed=True,
                tools_list_changed=True,
            ) as stream,
        ):
            assert (stream.honored.resource_subscriptions or []) == list(uris)
            group.start_soon(heard.listen, stream)
            yield client, heard
            group.cancel_scope.cancel()


async def subscribe(client: Client, uri: str) -> None:
    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)
