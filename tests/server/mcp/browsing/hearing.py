"""Clients of either era that hear of changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
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
        self._put, self._events = anyio.create_memory_object_stream[ServerEvent](100)

    def close(self) -> None:
        self._put.close()
        self._events.close()

    async def take(self, message: Any) -> None:
        match message:
            case types.ResourceUpdatedNotification(params=params):
                self._put.send_nowait(ResourceUpdated(str(params.uri)))
            case types.ResourceListChangedNotification():
                self._put.send_nowait(ResourcesListChanged())
            case types.PromptListChangedNotification():
                self._put.send_nowait(PromptsListChanged())
            case types.ToolListChangedNotification():
                self._put.send_nowait(ToolsListChanged())

    async def listen(self, stream: Any) -> None:
        async for event in stream:
            self._put.send_nowait(event)

    async def next(self) -> ServerEvent:
        with anyio.fail_after(30):
            return await self._events.receive()

    async def several(self, count: int) -> set[ServerEvent]:
        return {await self.next() for _ in range(count)}


@asynccontextmanager
async def listening(app: App, mode: str, *uris: str) -> AsyncIterator[tuple[Client, Heard]]:
    """A client that hears of some resources and of every list, as its era has it."""
    await app.functions.loaded()
    with closing(Heard()) as heard:
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
