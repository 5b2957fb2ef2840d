from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.transport.pipes import PipeWriter, lines_of

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
