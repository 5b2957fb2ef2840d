"""JSON-RPC over pipes, on the server's side."""

import io
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from server.transport.jsonrpc import PipeWriter, lines_of, messages

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
async def client() -> Ends:
    return Ends()


async def test_an_answer_still_reaches_a_client_that_has_closed_its_side(client: Ends) -> None:
    with anyio.fail_after(5):
        await client.say(REQUEST)
        async with client.messages() as (requests, answers):
            assert (await requests.receive()).message == REQUEST
            await answers.send(SessionMessage(ANSWER))
            with pytest.raises(anyio.EndOfStream):
                await requests.receive()
        assert client.answers == [ANSWER.model_dump(exclude_unset=True)]


async def test_the_input_does_not_end_while_a_request_is_open(client: Ends) -> None:
    await client.say(REQUEST)
    async with client.messages() as (requests, answers):
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


async def test_nothing_is_owed_for_a_cancelled_request(client: Ends) -> None:
    with anyio.fail_after(5):
        await client.say(REQUEST, CANCELLED)
        async with client.messages() as (requests, _answers):
            assert len([message async for message in requests]) == 2


async def test_a_stream_of_changes_holds_up_nobody_who_leaves(client: Ends) -> None:
    with anyio.fail_after(5):
        await client.say(LISTEN)
        async with client.messages() as (requests, _answers):
            assert (await requests.receive()).message == LISTEN
            with pytest.raises(anyio.EndOfStream):
                await requests.receive()


MIB = 2**20


def pipe() -> tuple[int, int]:
    return os.pipe()


def sockets() -> tuple[int, int]:
    """As Node gives its children for their standard streams."""
    one, other = socket.socketpair()
    return one.detach(), other.detach()


@pytest.fixture(params=[pipe, sockets])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """The descriptor to read, and the one to write."""
    make: Callable[[], tuple[int, int]] = request.param
    both = make()
    yield both
    for each in both:
        try:
            os.close(each)
        except OSError:
            continue  # the test has closed it


async def heard(descriptor: int, most: int = 10) -> list[bytes]:
    return [line async for line in lines_of(descriptor, most)]


async def test_lines_come_as_they_were_written(ends: tuple[int, int]) -> None:
    readable, writable = ends
    await PipeWriter(writable).write(b"one\n\ntwo\nlast")
    os.close(writable)
    assert await heard(readable) == [b"one", b"", b"two", b"last"]


async def test_a_line_that_is_too_long_shows_so_before_it_ends(ends: tuple[int, int]) -> None:
    readable, writable = ends
    await PipeWriter(writable).write(b"x" * 1_000)
    with anyio.fail_after(5):
        assert await anext(lines_of(readable, 10)) == b"x" * 11


async def test_lines_that_come_at_once_let_others_go_on(ends: tuple[int, int]) -> None:
    readable, writable = ends
    await PipeWriter(writable).write(b"line\n" * 500)
    os.close(writable)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        assert len(await heard(readable)) == 500
        group.cancel_scope.cancel()
    assert turns >= 499


@given(st.lists(st.binary(max_size=30)), st.integers(1, 12))
def test_every_line_is_whole_or_one_byte_too_long(lines: list[bytes], most: int) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]

    async def run() -> list[bytes]:
        readable, writable = pipe()
        await PipeWriter(writable).write(b"".join(line + b"\n" for line in lines))
        os.close(writable)
        try:
            return await heard(readable, most)
        finally:
            os.close(readable)

    assert anyio.run(run) == [line[: most + 1] for line in lines]


async def read_all(descriptor: int, size: int) -> bytes:
    came = b""
    while len(came) < size:
        await anyio.wait_readable(descriptor)
        came += os.read(descriptor, size)
    return came


async def test_what_is_more_than_a_pipe_holds_arrives_whole_and_in_its_turn(
    ends: tuple[int, int],
) -> None:
    readable, writable = ends
    writer = PipeWriter(writable)
    pieces = [os.urandom(MIB) for _ in range(3)]
    async with anyio.create_task_group() as group:
        group.start_soon(writer.run)
        for piece in pieces:
            group.start_soon(writer.write, piece)
        await anyio.wait_all_tasks_blocked()  # all wait; nobody has read
        assert await read_all(readable, 3 * MIB) == b"".join(pieces)
        await writer.drained()
        await writer.write(b"more")
        assert await read_all(readable, 4) == b"more"
        group.cancel_scope.cancel()


async def test_a_piece_is_written_whole_though_its_writer_is_cancelled(
    ends: tuple[int, int],
) -> None:
    readable, writable = ends
    writer = PipeWriter(writable)
    async with anyio.create_task_group() as group:
        group.start_soon(writer.run)
        async with anyio.create_task_group() as writers:
            writers.start_soon(writer.write, b"x" * MIB)
            await anyio.wait_all_tasks_blocked()
            writers.cancel_scope.cancel()
        async with anyio.create_task_group() as readers:
            readers.start_soon(writer.write, b"y")
            assert await read_all(readable, MIB + 1) == b"x" * MIB + b"y"
        group.cancel_scope.cancel()


async def test_a_reader_that_is_gone_is_told_and_ends_the_outlet(ends: tuple[int, int]) -> None:
    readable, writable = ends
    os.close(readable)
    writer = PipeWriter(writable)
    with pytest.raises(anyio.BrokenResourceError):
        await writer.write(b"hello\n")
    with pytest.raises(BrokenPipeError):
        await writer.run()


async def test_a_reader_that_leaves_in_the_middle_ends_the_outlet(ends: tuple[int, int]) -> None:
    readable, writable = ends
    writer = PipeWriter(writable)
    async with anyio.create_task_group() as group:
        group.start_soon(writer.write, b"x" * MIB)
        await anyio.wait_all_tasks_blocked()
        os.close(readable)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            await writer.run()
        group.cancel_scope.cancel()


async def test_whoever_shares_a_descriptor_still_waits_on_it(ends: tuple[int, int]) -> None:
    readable, writable = ends
    await PipeWriter(writable).write(b"hello\n")
    assert await anext(lines_of(readable)) == b"hello"
    assert os.get_blocking(readable)
    assert os.get_blocking(writable)


async def test_a_file_is_read_and_written_like_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    data = b"line\n" * 50_000
    written = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    writer = PipeWriter(written)
    async with anyio.create_task_group() as group:
        group.start_soon(writer.run)
        await writer.write(data)
        group.cancel_scope.cancel()
    os.close(written)
    read = os.open(path, os.O_RDONLY)
    assert await heard(read) == [b"line"] * 50_000
    os.close(read)


async def test_the_null_device_has_no_lines() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    await PipeWriter(null).write(b"hello\n")
    assert await heard(null) == []
    os.close(null)
