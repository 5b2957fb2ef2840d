from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from server.transport.jsonrpc import messages

HELLO = '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
DEEP = "[" * 100_000

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("id"), inner),
    max_leaves=8,
)


def exchange(text: str) -> tuple[list[Any], list[Any]]:
    """The messages that a server is handed of a client's text, and what it is answered."""
    answers: list[Any] = []

    async def answer(line: bytes) -> None:
        answers.append(json.loads(line))

    async def run() -> list[Any]:
        source = anyio.wrap_file(io.BytesIO(text.encode(errors="surrogatepass")))
        incoming, _ = messages(source, answer)
        return [each.message async for each in incoming]

    return anyio.run(run), answers


@pytest.mark.parametrize(
    ("line", "answered"),
    [
        ("no json", None),
        ('{"jsonrpc": "2.0", "id": 7', None),  # it may have begun another number
        ('{"jsonrpc": "2.0", "id": 7, "method": ', 7),
        ('{"method": "m", "params": {"id": 8, "x": "\\ud800"}, "jsonrpc": "2.0", "id": 7}', 7),
        ('{"params": ["}", "\\"id\\": 8,", {"id": 8}, ' + DEEP + ']], "id": 7', None),
        ('{"id": "a\\"b", "params": {"a": ' + DEEP, 'a"b'),
        ('{"id": "\\ud800", "method": "ping", "jsonrpc": "2.0"}', None),
        ('{"id": ' + "9" * 5000 + ', "method": "ping", "jsonrpc": "2.0"}', None),
        ('{"id": 7, "params": {"n": ' + "9" * 5000 + '}, "method": "m", "jsonrpc": "2.0"}', 7),
    ],
)
def test_a_line_that_is_no_json_is_answered_under_its_id_if_that_is_certain(
    line: str, answered: Any
) -> None:
    heard, (answer,) = exchange(line + "\n")
    assert heard == []
    assert answer["id"] == answered
    assert answer["error"]["code"] == types.PARSE_ERROR


@pytest.mark.parametrize(
    ("message", "answered"),
    [
        (7, None),
        (None, None),
        ([json.loads(HELLO), json.loads(HELLO)], None),
        ({"jsonrpc": "1.0", "id": 7, "method": "ping"}, 7),
        ({"id": "x", "method": "ping"}, "x"),
        ({"jsonrpc": "2.0", "id": 7, "method": 1}, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}, 7),
        ({"jsonrpc": "2.0", "id": [1], "method": 1}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": 1}, None),
    ],
)
def test_json_that_is_no_message_is_answered_under_its_id(message: Any, answered: Any) -> None:
    heard, (answer,) = exchange(json.dumps(message) + "\n")
    assert heard == []
    assert answer["id"] == answered
    assert answer["error"]["code"] == types.INVALID_REQUEST


def test_blank_lines_say_nothing() -> None:
    assert exchange("\n \t\n\r\n") == ([], [])


@given(st.lists(st.text(st.characters(exclude_characters="\r\n")) | json_values.map(json.dumps)))
def test_a_message_is_heard_after_any_lines(lines: list[str]) -> None:
    heard, answers = exchange("".join(f"{line}\n" for line in lines) + HELLO)
    assert heard[-1] == types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
    assert len(heard) - 1 + len(answers) == sum(bool(line.strip()) for line in lines)


REQUEST = types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")
ANSWER = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={})
LISTEN = types.JSONRPCRequest(jsonrpc="2.0", id=2, method="subscriptions/listen")
CANCELLED = types.JSONRPCNotification(
    jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}
)


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
