"""Streams, as the SDK takes them, made of an iterator and of a function.

A message so reaches whoever takes it in the same turn of the event loop; between the two ends of
a memory stream it would wait for one or two more.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Self

import anyio
from mcp.shared.message import SessionMessage

__all__ = ["Incoming", "Outgoing"]


class Incoming:
    """Messages that an iterator gives.

    Args:
        items: Gives them; it is closed with the stream.
    """

    def __init__(self, items: AsyncGenerator[SessionMessage]) -> None:
        self._items = items

    async def receive(self) -> SessionMessage:
        """The next message.

        Raises:
            anyio.EndOfStream: There is none any more.
        """
        try:
            return await anext(self._items)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._items.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        return await anext(self._items)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_failure: object) -> None:
        await self.aclose()


class Outgoing:
    """Messages that a function takes.

    Args:
        send: Takes one.
    """

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._send = send
        self._is_closed = False

    async def send(self, item: SessionMessage) -> None:
        """Hands on a message.

        Raises:
            anyio.ClosedResourceError: The stream was closed.
        """
        if self._is_closed:
            raise anyio.ClosedResourceError
        await self._send(item)

    async def aclose(self) -> None:
        """Closes the stream."""
        self._is_closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_failure: object) -> None:
        await self.aclose()
