"""JSON-RPC over pipes: one message per line, and an answer to every invalid line.

Pipes are read and written on the event loop. That uses no threads, as switching to one and back
costs a call more than the call itself. It does not set `O_NONBLOCK`, which would affect other
processes with the same pipe or terminal.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Self

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp.shared.message import MessageMetadata, SessionMessage
from pydantic import ValidationError

PIECE = 65_536
"""Bytes per read or write, the capacity of a pipe."""

DRAIN_SECONDS = 10.0
"""Time for requests in flight after the client closes its side."""

_TOKEN = re.compile(
    r'"id"\s*+:\s*+(?P<id>"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?\d{1,18})(?=\s*[,}])'
    r'|"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
    r"|[\[\]{}]",
    re.DOTALL,
)
"""A request's id, a string or a bracket; possessive, so that matching takes linear time."""


async def lines_of(
    descriptor: int, most: int = sys.maxsize, *, before: bytes = b""
) -> AsyncIterator[bytes]:
    """Yields lines until the other end is closed, beginning with `before`, which was read.

    A line of more than `most` bytes is yielded at once, cut after one more byte.
    """
    pieces: list[bytes] = []
    left = most + 1
    while data := before or await _read(descriptor):
        before = b""
        *ended, last = data.split(b"\n")
        for number, piece in enumerate(ended):
            if number:  # yields to other tasks between lines
                await anyio.lowlevel.checkpoint()
            if left:
                yield b"".join((*pieces, piece[:left]))
            pieces, left = [], most + 1
        if last and left:
            pieces.append(last[:left])
            left -= len(pieces[-1])
            if not left:
                yield b"".join(pieces)
                pieces.clear()
    if pieces:
        yield b"".join(pieces)


class Flow:
    """A token bucket: allows bursts, and limits the long-term rate."""

    def __init__(self, burst: int = 2_000, a_second: int = 1_000) -> None:
        self._burst = float(burst)
        self._rate = a_second
        self._left = self._burst
        self._then = time.monotonic()

    def passes(self) -> bool:
        """Returns whether one more may pass now."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._then) * self._rate)
        self._then = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    async def next(self) -> None:
        """Waits until one more may pass."""
        while not self.passes():  # noqa: ASYNC110  # it waits for time to pass
            await anyio.sleep(100 / self._rate)


class PipeWriter:
    """Writes to a descriptor: each piece whole and in order, even if a writer is cancelled.

    The descriptor is a pipe, a socket, a terminal, or a file, and has no other writer.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._left = bytearray()
        self._filled = anyio.Event()
        self._emptied = anyio.Event()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    async def write(self, data: bytes) -> None:
        """Writes what fits at once, and waits for `run` to write the rest.

        Raises:
            anyio.BrokenResourceError: If the reader is gone; `run` fails as well.
        """
        if not self._left:
            try:
                data = data[self._write_now(data) :]
            except OSError as error:
                self._leave(data)
                raise anyio.BrokenResourceError from error
        if data:
            self._leave(data)
            await self.drained()

    async def drained(self) -> None:
        """Waits until nothing is left to write."""
        if self._left:
            await self._emptied.wait()

    async def run(self) -> None:
        """Writes what did not fit, until it is cancelled.

        Raises:
            OSError: If the reader is gone.
        """
        while True:
            await self._filled.wait()
            while self._left:
                await _until(anyio.wait_writable, self._descriptor)
                del self._left[: self._write_now(self._left)]
            self._emptied.set()
            self._filled, self._emptied = anyio.Event(), anyio.Event()

    def _leave(self, data: bytes) -> None:
        self._left += data
        self._filled.set()

    def _write_now(self, data: bytes | bytearray) -> int:
        """Writes without blocking; returns the number of bytes."""
        done, most = 0, min(len(data), PIECE)
        with memoryview(data) as view:
            while done < most and self._poll.poll(0):
                # A writable pipe takes PIPE_BUF bytes without blocking (POSIX, <limits.h>).
                done += os.write(self._descriptor, view[done : done + select.PIPE_BUF])
        return done


async def _read(descriptor: int) -> bytes:
    while True:
        await _until(anyio.wait_readable, descriptor)
        try:
            return os.read(descriptor, PIECE)
        except BlockingIOError:
            continue


async def _until(ready: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await ready(descriptor)
    except PermissionError:  # dev/dev/null: for neither is there anything to wait for
        await anyio.lowlevel.checkpoint()


class Incoming:
    """A stream for the SDK of messages from an iterator.

    A message reaches its receiver in the same turn of the event loop; a memory stream would delay
    it by one or two turns.
    """

    def __init__(self, items: AsyncGenerator[SessionMessage]) -> None:
        self._items = items

    async def receive(self) -> SessionMessage:
        """Returns the next message.

        Raises:
            anyio.EndOfStream: At the end.
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
    """A stream for the SDK whose messages go to a function."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._send = send
        self._is_closed = False

    async def send(self, item: SessionMessage) -> None:
        """Passes on a message.

        Raises:
            anyio.ClosedResourceError: If the stream was closed.
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


def messages(
    source: AsyncIterable[bytes],
    write: Callable[[bytes], Awaitable[None]],
    *,
    answered: str | int | None = None,
    metadata: MessageMetadata = None,
) -> tuple[Incoming, Outgoing]:
    """Returns the streams of one client, which end with `source` once all requests are answered.

    The SDK's `stdio_server` drops lines that it cannot parse, so that a request in one waits
    forever, and drops the requests in flight as soon as the input ends.

    The request `answered` was answered already; its second answer is dropped.
    """
    pending = _PendingRequests()

    async def receive() -> AsyncGenerator[SessionMessage]:
        async for line in source:
            text = line.decode(errors="replace")
            try:
                message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValidationError as error:
                if text.strip():
                    await send(SessionMessage(_refusal(text, error)))
            else:
                pending.received(message)
                yield SessionMessage(message, metadata)
        with anyio.move_on_after(DRAIN_SECONDS):
            await pending.wait_for_none()

    async def send(item: SessionMessage) -> None:
        nonlocal answered
        if answered is not None and _answered_id(item.message) == answered:
            answered = None
            pending.sent(item.message)
            return
        await write(encoded(item.message))
        pending.sent(item.message)

    return Incoming(receive()), Outgoing(send)


def encoded(message: types.JSONRPCMessage) -> bytes:
    """Encodes a message as a line."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class _PendingRequests:
    """Requests awaiting an answer: a pipe may end right after its last one."""

    def __init__(self) -> None:
        self._ids: set[object] = set()
        self._none = anyio.Event()
        self._none.set()

    def received(self, message: types.JSONRPCMessage) -> None:
        """Records a request, or the cancellation of one."""
        match message:
            case types.JSONRPCRequest(method="subscriptions/listen"):
                pass  # a stream that lasts as long as the client
            case types.JSONRPCRequest(id=request):
                self._ids.add(request)
                self._none = anyio.Event()
            case types.JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": request}
            ):
                self._settle(request)

    def sent(self, message: types.JSONRPCMessage) -> None:
        """Records a sent message."""
        if (request := _answered_id(message)) is not None:
            self._settle(request)

    async def wait_for_none(self) -> None:
        """Waits until all requests are answered or cancelled."""
        await self._none.wait()

    def _settle(self, request: object) -> None:
        self._ids.discard(request)
        if not self._ids:
            self._none.set()


def _answered_id(message: types.JSONRPCMessage) -> str | int | None:
    if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
        return message.id
    return None


def _refusal(line: str, error: ValidationError) -> types.JSONRPCError:
    """Returns the answer to a line that is not a message (JSON-RPC 2.0, section 5.1)."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        what = types.ErrorData(code=types.PARSE_ERROR, message=f"Parse error: {first['msg']}.")
    else:
        what = types.ErrorData(
            code=types.INVALID_REQUEST,
            message='Invalid request: send one object per line with "jsonrpc": "2.0", a method, '
            "params (an object, if any) and for an answer an id; batches are not accepted.",
        )
    return types.JSONRPCError(jsonrpc="2.0", id=_id_of(line), error=what)


def _id_of(line: str) -> str | int | None:
    """Returns the id of a malformed message; None if it is uncertain."""
    depth = 0
    for token in _TOKEN.finditer(line):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        elif token["id"] and depth == 1:
            return _parse_id(token["id"])
    return None


def _parse_id(written: str) -> str | int | None:
    try:
        value: str | int = json.loads(written)
        str(value).encode()
    except ValueError:  # not a JSON string, or an unpaired surrogate
        return None
    return value
