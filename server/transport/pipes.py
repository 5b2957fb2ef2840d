"""Pipes: reads and writes descriptors on the event loop.

It uses no threads, as switching to one and back costs a call more than the call itself. It does
not set `O_NONBLOCK`, which would affect other processes with the same pipe or terminal.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel

PIECE = 65_536
"""Bytes per read or write, the capacity of a pipe."""


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
