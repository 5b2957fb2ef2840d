"""Pipes: what goes through descriptors, on the event loop.

None of it needs a thread, whose two changes cost a call more than the call itself, and none of it
sets `O_NONBLOCK`, which whoever else holds the same pipe or terminal would have to live with.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel

PIECE = 65_536
"""Bytes that are read or written at once, as many as a pipe holds."""


async def lines_of(
    descriptor: int, most: int = sys.maxsize, *, before: bytes = b""
) -> AsyncIterator[bytes]:
    """The lines that come in until everybody has closed the other end.

    Args:
        descriptor: A pipe, a socket, a terminal, or a file.
        most: Bytes of a line; of one that has more, one byte more is given at once, and no further.
        before: What was read of it already.
    """
    pieces: list[bytes] = []
    left = most + 1
    while data := before or await _read(descriptor):
        before = b""
        *ended, last = data.split(b"\n")
        for number, piece in enumerate(ended):
            if number:  # of many that come at once each lets others go on
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


class PipeWriter:
    """What goes out of a descriptor: each piece whole and in its turn, whoever is cancelled.

    Args:
        descriptor: A pipe, a socket, a terminal, or a file, to which nobody else writes.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._left = bytearray()
        self._filled = anyio.Event()
        self._emptied = anyio.Event()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    async def write(self, data: bytes) -> None:
        """Writes at once what the reader has room for, and waits for `run` to write the rest.

        Raises:
            anyio.BrokenResourceError: If nobody reads any more; `run` meets that too.
        """
        if not self._left:
            try:
                data = data[self._written(data) :]
            except OSError as error:
                self._leave(data)
                raise anyio.BrokenResourceError from error
        if data:
            self._leave(data)
            await self.drained()

    async def drained(self) -> None:
        """Returns once nothing is left to write."""
        if self._left:
            await self._emptied.wait()

    async def run(self) -> None:
        """Writes what the reader had no room for, until it is cancelled.

        Raises:
            OSError: If nobody reads any more.
        """
        while True:
            await self._filled.wait()
            while self._left:
                await _until(anyio.wait_writable, self._descriptor)
                del self._left[: self._written(self._left)]
            self._emptied.set()
            self._filled, self._emptied = anyio.Event(), anyio.Event()

    def _leave(self, data: bytes) -> None:
        self._left += data
        self._filled.set()

    def _written(self, data: bytes | bytearray) -> int:
        """Writes without waiting, and says how much."""
        done, most = 0, min(len(data), PIECE)
        with memoryview(data) as view:
            while done < most and self._poll.poll(0):
                # What can be written to takes so much at once (POSIX, write and <limits.h>).
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
    except PermissionError:  # a file, or /dev/null: for neither is there anything to wait for
        await anyio.lowlevel.checkpoint()
