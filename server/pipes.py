"""Pipes: what goes through descriptors, on the event loop.

None of it needs a thread, whose two changes cost a call more than the call itself, and none of it
sets `O_NONBLOCK`, which whoever else holds the same pipe or terminal would have to live with.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel

__all__ = ["lines_of", "write_all"]

PIECE = 65_536
"""Bytes that are read at once, as many as a pipe holds."""


async def lines_of(descriptor: int, most: int = sys.maxsize) -> AsyncIterator[bytes]:
    """The lines that come in until everybody has closed the other end.

    Args:
        descriptor: A pipe, a socket, a terminal, or a file.
        most: Bytes of a line; of one that has more, one byte more is given at once, and no further.
    """
    pieces: list[bytes] = []
    left = most + 1
    while data := await _read(descriptor):
        *ended, last = data.split(b"\n")
        for piece in ended:
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


async def write_all(descriptor: int, data: bytes) -> None:
    """Writes, and lets others go on where the reader is slow.

    Args:
        descriptor: A pipe, a socket, a terminal, or a file, to which nobody else writes.
        data: What is written.

    Raises:
        BrokenPipeError: If nobody reads any more.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    with memoryview(data) as left:
        done = 0
        while done < len(data):
            if not poll.poll(0):
                await anyio.wait_writable(descriptor)
            # What can be written to takes so much without waiting (POSIX, write and <limits.h>).
            done += os.write(descriptor, left[done : done + select.PIPE_BUF])


async def _read(descriptor: int) -> bytes:
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:  # a file, or /dev/null: for neither is there anything to wait for
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(descriptor, PIECE)
        except BlockingIOError:
            continue
