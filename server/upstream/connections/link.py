"""Links: the way to another server, and what is known of how it fared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.client._transport import ReadStream, TransportStreams  # of public signatures
from mcp.shared.message import SessionMessage

MOST_BYTES = 32 * 2**20
"""Bytes of one message; more is no answer but an attack, or a defect."""

Item = SessionMessage | Exception


class Link(ABC):
    """One way to a server: a transport of the SDK that notices its end; entered once.

    Attributes:
        ended: Set once nothing can come from the server any more.
        received: Bytes that came from it so far.
        is_forgotten: Whether the server knows nothing of the session any more.
    """

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.received = 0
        self.is_forgotten = False
        self._stack = AsyncExitStack()

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[TransportStreams]:
        """The streams of a new session with the server."""

    @property
    def last_words(self) -> str:
        """What the server said last beside the protocol; empty if nothing is known."""
        return ""

    @abstractmethod
    async def explain(self) -> str:
        """What the server itself did that a failure may come from; empty if nothing is known."""

    async def __aenter__(self) -> TransportStreams:
        async with AsyncExitStack() as stack:
            read, write = await stack.enter_async_context(self.open())
            self._stack = stack.pop_all()
        return _Watched(read, self.ended), write

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)


def said_last(link: Link) -> str:
    """What a server said last, as the end of a sentence; empty if nothing is known."""
    return f"; its last lines: {link.last_words}" if link.last_words else ""


class _Watched:
    """A stream that tells when it has ended."""

    def __init__(self, stream: ReadStream[Item], ended: anyio.Event) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:  # noqa: ANN401  # whatever the SDK's own stream has
        """The context in which the last message was sent."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Item:
        """The next message."""
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_failure: object) -> None:
        await self.aclose()
