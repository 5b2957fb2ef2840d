"""Links: the transport to another server, and why it failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.client._transport import ReadStream, TransportStreams  # of public signatures
from mcp.shared.message import SessionMessage

MOST_BYTES = 32 * 2**20
"""Maximum bytes of a message; more indicates an attack or a defect."""

Item = SessionMessage | Exception


class Link(ABC):
    """A transport of the SDK that detects its end; entered once.

    Attributes:
        ended: Set once nothing more can be received.
        received: Bytes received so far.
        is_forgotten: Whether the server has lost the session.
    """

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.received = 0
        self.is_forgotten = False
        self._stack = AsyncExitStack()

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Opens the streams of a new session with the server."""

    @property
    def last_words(self) -> str:
        """The server's last output outside of the protocol; empty if unknown."""
        return ""

    @abstractmethod
    async def explain(self) -> str:
        """Returns what the server did that may have caused a failure; empty if unknown."""

    async def __aenter__(self) -> TransportStreams:
        async with AsyncExitStack() as stack:
            read, write = await stack.enter_async_context(self.open())
            self._stack = stack.pop_all()
        return _EndingStream(read, self.ended), write

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)


def last_words_text(link: Link) -> str:
    """Returns a server's last output as the end of a sentence; empty if unknown."""
    return f"; its last lines: {link.last_words}" if link.last_words else ""


class _EndingStream:
    """A stream that signals its end."""

    def __init__(self, stream: ReadStream[Item], ended: anyio.Event) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:  # noqa: ANN401  # as in the SDK's stream
        """The context of the last message."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Item:
        """Returns the next message."""
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
