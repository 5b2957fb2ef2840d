from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from server.transport.lines import messages

REQUEST = types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")
ANSWER = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={})
LISTEN = types.JSONRPCRequest(jsonrpc="2.0", id=2, method="subscriptions/listen")
CANCELLED = types.JSONRPCNotification(
    jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}
)

pytestmark = pytest.mark.anyio


def encoded(message: types.JSONRPCRequest | types.JSONRPCNotification) -> bytes:
    return message.model_dump_json(exclude_unset=True).encode()


class Ends:
    """A client's two ends, and what the server sees of them."""

    def __init__(self) -> None:
        self.client, self.source = anyio.create_memory_object_stream[bytes](10)
        self.answers: list[Any] = []

    async def say(self, *said: types.JSONRPCRequest | types.JSONRPCNotification) -> None:
        """Says all of it and closes this side."""
        async with self.client:
            for message in said:
                await self.client.send(encoded(message))

    @asynccontextmanager
    async def messages(self) -> AsyncIterator[tuple[Any, Any]]:
        requests, answers = messages(self.source, self._take)
        async with self.source, requests, answers:
            yield requests, answers

    async def _take(self, line: bytes) -> None:
        self.answers.append(json.loads(line))


@pytest.fixture
async def ends() -> Ends:
    return Ends()


async def test_an_answer_still_reaches_a_client_that_has_closed_its_side(ends: Ends) -> None:
    with anyio.fail_after(5):
        await ends.say(REQUEST)
        async with ends.messages() as (requests, answers):
            assert (await requests.receive()).message == REQUEST
            await answers.send(SessionMessage(ANSWER))
            with pytest.raises(anyio.EndOfStream):
                await requests.receive()
        assert ends.answers == [ANSWER.model_dump(exclude_unset=True)]


async def test_the_input_does_not_end_while_a_request_is_open(ends: Ends) -> None:
    await ends.say(REQUEST)
    async with ends.messages() as (requests, answers):
        await requests.receive()
        ended = anyio.Event()

        async def wait_for_the_end() -> None:
            with pytest.raises(anyio.EndOfStream):
                await requests.receive()
            ended.set()

        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_the_end)
            await anyio.wait_all_tasks_blocked()
            assert not ended.is_set()
            await answers.send(SessionMessage(ANSWER))


async def test_nothing_is_owed_for_a_cancelled_request(ends: Ends) -> None:
    with anyio.fail_after(5):
        await ends.say(REQUEST, CANCELLED)
        async with ends.messages() as (requests, _answers):
            assert len([message async for message in requests]) == 2


async def test_a_stream_of_changes_holds_up_nobody_who_leaves(ends: Ends) -> None:
    with anyio.fail_after(5):
        await ends.say(LISTEN)
        async with ends.messages() as (requests, _answers):
            assert (await requests.receive()).message == LISTEN
            with pytest.raises(anyio.EndOfStream):
                await requests.receive()
