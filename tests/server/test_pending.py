from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from server.pending import answering

REQUEST = SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list"))
ANSWER = SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
CANCELLED = SessionMessage(
    types.JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}
    )
)

pytestmark = pytest.mark.anyio


class Ends:
    """A client's two ends, and what the server sees of them."""

    def __init__(self) -> None:
        self.client, self.reader = anyio.create_memory_object_stream[Any](10)
        self.writer, self.answers = anyio.create_memory_object_stream[Any](10)

    async def say(self, *messages: SessionMessage) -> None:
        """Says all of it and closes this side."""
        async with self.client:
            for message in messages:
                await self.client.send(message)


@pytest.fixture
def ends() -> Ends:
    return Ends()


async def test_an_answer_still_reaches_a_client_that_has_closed_its_side(ends: Ends) -> None:
    with anyio.fail_after(5):
        await ends.say(REQUEST)
        async with answering(ends.reader, ends.writer, lambda: False) as (requests, answers):
            assert await requests.receive() == REQUEST
            await answers.send(ANSWER)
            with pytest.raises(anyio.EndOfStream):
                await requests.receive()
        async with ends.answers:
            assert [answer async for answer in ends.answers] == [ANSWER]


async def test_the_input_does_not_end_while_a_request_is_open(ends: Ends) -> None:
    await ends.say(REQUEST)
    async with (
        answering(ends.reader, ends.writer, lambda: False) as (requests, _),
        ends.answers,
    ):
        await requests.receive()
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0) as waiting:
            await requests.receive()
        assert waiting.cancelled_caught


@pytest.mark.parametrize("last", [CANCELLED, None])
async def test_nothing_is_owed_for_a_cancelled_request_or_by_a_stopped_server(
    ends: Ends, last: SessionMessage | None
) -> None:
    with anyio.fail_after(5):
        await ends.say(REQUEST, *([last] if last else []))
        async with (
            answering(ends.reader, ends.writer, lambda: last is None) as (requests, _),
            ends.answers,
        ):
            seen = [message async for message in requests]
    assert len(seen) == (2 if last else 1)
