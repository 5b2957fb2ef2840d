"""JSON-RPC over streams of bytes: one message a line, and an answer to every bad line."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

DRAIN_SECONDS = 10.0
"""How long requests in flight may take once the client has closed its side."""

_TOKEN = re.compile(
    r'"id"\s*+:\s*+(?P<id>"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?\d{1,18})(?=\s*[,}])'
    r'|"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
    r"|[\[\]{}]",
    re.DOTALL,
)
"""A request's id, a text, or a bracket; possessive, so that no line takes longer than linear."""


class Incoming:
    """A stream, as the SDK takes it, of the messages that an iterator gives.

    A message so reaches whoever takes it in the same turn of the event loop; between the two ends
    of a memory stream it would wait for one or two more.

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
    """A stream, as the SDK takes it, of messages that a function takes."""

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


def messages(
    source: AsyncIterable[bytes],
    write: Callable[[bytes], Awaitable[None]],
    *,
    answered: str | int | None = None,
) -> tuple[Incoming, Outgoing]:
    """The messages of one client, in and out, until `source` ends and every request is answered.

    The SDK's `stdio_server` drops a line that it cannot read, so that whoever sent a request in it
    waits for ever, and drops the requests in flight as soon as the input ends.

    Args:
        source: Lines from the client.
        write: Writes to the client.
        answered: Id of the first request, if it has its answer already: the one that is made for it
            is dropped.
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
                yield SessionMessage(message)
        with anyio.move_on_after(DRAIN_SECONDS):
            await pending.wait_for_none()

    async def send(item: SessionMessage) -> None:
        nonlocal answered
        if answered is not None and _id_answered(item.message) == answered:
            answered = None
            pending.sent(item.message)
            return
        await write(encoded(item.message))
        pending.sent(item.message)

    return Incoming(receive()), Outgoing(send)


def encoded(message: types.JSONRPCMessage) -> bytes:
    """A message as the line that is sent."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class _PendingRequests:
    """The requests that wait for their answer: a pipe may end right after its last one."""

    def __init__(self) -> None:
        self._ids: set[object] = set()
        self._none = anyio.Event()
        self._none.set()

    def received(self, message: types.JSONRPCMessage) -> None:
        """Notes what the client says: a request, or that it no longer waits for one."""
        match message:
            case types.JSONRPCRequest(method="subscriptions/listen"):
                pass  # a stream that lasts as long as the client does
            case types.JSONRPCRequest(id=request):
                self._ids.add(request)
                self._none = anyio.Event()
            case types.JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": request}
            ):
                self._settle(request)

    def sent(self, message: types.JSONRPCMessage) -> None:
        """Notes what was sent to the client."""
        if (request := _id_answered(message)) is not None:
            self._settle(request)

    async def wait_for_none(self) -> None:
        """Waits until every request has been answered or cancelled."""
        await self._none.wait()

    def _settle(self, request: object) -> None:
        self._ids.discard(request)
        if not self._ids:
            self._none.set()


def _id_answered(message: types.JSONRPCMessage) -> str | int | None:
    if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
        return message.id
    return None


def _refusal(line: str, error: ValidationError) -> types.JSONRPCError:
    """The answer to a line that is no message (JSON-RPC 2.0, section 5.1)."""
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
    """The id of the message that a line was meant to be; None where there is none to be sure of."""
    depth = 0
    for token in _TOKEN.finditer(line):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        elif token["id"] and depth == 1:
            return _sendable(token["id"])
    return None


def _sendable(written: str) -> str | int | None:
    try:
        value: str | int = json.loads(written)
        str(value).encode()
    except ValueError:  # no text of JSON's, or half of a surrogate pair
        return None
    return value
