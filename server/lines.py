"""JSON-RPC over two streams of bytes: one message a line, and an answer to every bad line."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from server.pending import PendingRequests

__all__ = ["messages"]

PATIENCE_SECONDS = 10.0
"""How long requests in flight may take once the client has closed its side."""

_TOKEN = re.compile(
    r'"id"\s*+:\s*+(?P<id>"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?\d{1,18})(?=\s*[,}])'
    r'|"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
    r"|[\[\]{}]",
    re.DOTALL,
)
"""A request's id, a text, or a bracket; possessive, so that no line takes longer than linear."""


@asynccontextmanager
async def messages(
    source: AsyncIterable[bytes],
    write_all: Callable[[bytes], Awaitable[None]],
    reading: anyio.CancelScope,
) -> AsyncIterator[
    tuple[MemoryObjectReceiveStream[SessionMessage], MemoryObjectSendStream[SessionMessage]]
]:
    """The messages of one client, in and out, until `source` ends and every request is answered.

    As the SDK's `stdio_server`, which drops a line that it cannot read, so that whoever sent a
    request in it would wait for ever, and drops the requests in flight as soon as the input ends.

    Args:
        source: Lines from the client.
        write_all: Writes to the client.
        reading: Is cancelled once the process is told to end, and so owes nobody anything.
    """
    pending = PendingRequests()
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    refusals = outgoing.clone()

    async def read() -> None:
        async with to_server, refusals:
            with reading:
                async for line in source:
                    await take(line.decode(errors="replace"))
            if not reading.cancel_called:
                with anyio.move_on_after(PATIENCE_SECONDS):
                    await pending.wait_for_none()

    async def take(line: str) -> None:
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            if line.strip():
                await refusals.send(SessionMessage(_refusal(line, error)))
        else:
            pending.received(message)
            await to_server.send(SessionMessage(message))

    async def write() -> None:
        async with from_server:
            async for each in from_server:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await write_all(text.encode() + b"\n")
                pending.sent(each.message)

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        yield incoming, outgoing


def _refusal(line: str, error: ValidationError) -> types.JSONRPCError:
    """The answer to a line that is no message (JSON-RPC 2.0, section 5.1)."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        what = types.ErrorData(code=types.PARSE_ERROR, message=f"Parse error: {first['msg']}.")
    else:
        what = types.ErrorData(
            code=types.INVALID_REQUEST,
            message='Invalid request: send one object a line with "jsonrpc": "2.0", a method, '
            "params (an object, if any) and for an answer an id; batches are not taken.",
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
