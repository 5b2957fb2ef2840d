"""Answers owed to a client that has closed its side: a pipe ends right after its last request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

__all__ = ["answering"]

Incoming = SessionMessage | Exception

PATIENCE_SECONDS = 10.0
"""How long requests in flight may take once the client has closed its side."""


@asynccontextmanager
async def answering(
    reader: ReadStream[Incoming],
    writer: WriteStream[SessionMessage],
    stopped: Callable[[], bool],
) -> AsyncIterator[tuple[ReadStream[Incoming], WriteStream[SessionMessage]]]:
    """The same streams, but the input ends only when every request has been answered.

    The SDK drops requests in flight as soon as the input ends.

    Args:
        reader: Messages from the client.
        writer: Messages to the client.
        stopped: Whether the process was told to end, and so owes nobody anything.
    """
    pending = _Pending()
    to_server, from_client = anyio.create_memory_object_stream[Incoming](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    receiving = anyio.CancelScope()

    async def receive() -> None:
        with receiving:
            async with reader, to_server:
                async for message in reader:
                    pending.received(message)
                    await to_server.send(message)
                if not stopped():
                    with anyio.move_on_after(PATIENCE_SECONDS):
                        await pending.wait_for_none()

    async def send() -> None:
        async with writer, from_server:
            async for message in from_server:
                await writer.send(message)
                pending.sent(message)

    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        group.start_soon(send)
        yield from_client, to_client
        receiving.cancel()
        await from_client.aclose()
        await to_client.aclose()  # what was said is still sent


class _Pending:
    """The requests that wait for their answer."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._none = anyio.Event()
        self._none.set()

    def received(self, message: Incoming) -> None:
        match message:
            case SessionMessage(message=types.JSONRPCRequest(id=request)):
                self._ids.add(request)
                self._none = anyio.Event()
            case SessionMessage(
                message=types.JSONRPCNotification(
                    method="notifications/cancelled", params={"requestId": request}
                )
            ):
                self._settle(request)

    def sent(self, message: SessionMessage) -> None:
        match message.message:
            case types.JSONRPCResponse(id=request) | types.JSONRPCError(id=request):
                self._settle(request)

    async def wait_for_none(self) -> None:
        await self._none.wait()

    def _settle(self, request: object) -> None:
        self._ids.discard(request)
        if not self._ids:
            self._none.set()
