"""JSON-RPC over two streams of bytes: one message a line, and an answer to every bad line."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from server.transport.pending import PendingRequests
from server.transport.streams import Incoming, Outgoing

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


def messages(
    source: AsyncIterable[bytes],
    write: Callable[[bytes], Awaitable[None]],
    *,
    answered: str | int | None = None,
) -> tuple[Incoming, Outgoing]:
    """The messages of one client, in and out, until `source` ends and every request is answered.

    As the SDK's `stdio_server`, which drops a line that it cannot read, so that whoever sent a
    request in it would wait for ever, and drops the requests in flight as soon as the input ends.

    Args:
        source: Lines from the client.
        write: Writes to the client.
        answered: Id of the first request, if it has its answer already: the one that is made for it
            is dropped.
    """
    pending = PendingRequests()

    async def heard() -> AsyncGenerator[SessionMessage]:
        async for line in source:
            text = line.decode(errors="replace")
            try:
                message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValidationError as error:
                if text.strip():
                    await say(SessionMessage(_refusal(text, error)))
            else:
                pending.received(message)
                yield SessionMessage(message)
        with anyio.move_on_after(PATIENCE_SECONDS):
            await pending.wait_for_none()

    async def say(item: SessionMessage) -> None:
        nonlocal answered
        if answered is not None and _id_answered(item.message) == answered:
            answered = None
            pending.sent(item.message)
            return
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        await write(text.encode() + b"\n")
        pending.sent(item.message)

    return Incoming(heard()), Outgoing(say)


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
