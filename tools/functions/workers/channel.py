"""The worker's end of the way to the server.

A spare process waits here, so it imports little: no anyio, which doubles what asyncio takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator
from io import TextIOWrapper
from pathlib import Path
from typing import cast

from tools.functions.workers.bounds import OF_FILES, Bounds
from tools.functions.workers.messages import Load, Message, encode

__all__ = ["Channel"]

CHUNK = 1 << 20
"""Bytes that are read at once."""


class Channel:
    """Keeps what this process was started with for the server, and its output for the rest.

    Args:
        incoming: Where the server's messages come in.
        outgoing: Where those to it go; the same for a socket.
        output: Where everything goes that is printed.
        bounds: What a message to the server may be.
    """

    def __init__(
        self, incoming: int, outgoing: int, *, output: int, bounds: Bounds = OF_FILES
    ) -> None:
        self._bounds = bounds
        self._incoming, self._outgoing = os.dup(incoming), os.dup(outgoing)
        self._turn = threading.Lock()
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        cast("TextIOWrapper", sys.stdout).reconfigure(
            line_buffering=True, errors="backslashreplace"
        )

    def first(self) -> Load:
        """Returns what is to be loaded: the first message, behind which nothing comes yet."""
        with open(self._incoming, "rb", closefd=False) as first:
            return Load(**json.loads(first.readline())["load"])

    def send(self, message: Message) -> None:
        """Sends a message, from any thread.

        Raises:
            TooLongError: If it is more than one may be.
            ValueError: If JSON cannot say it.
            RecursionError: If it is nested too deeply.
        """
        line = memoryview(encode(message, self._bounds))
        with self._turn:
            while line:
                line = line[os.write(self._outgoing, line) :]

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yields what comes in, until the server hangs up."""
        while True:
            await _readable(self._incoming)
            chunk = os.read(self._incoming, CHUNK)
            if not chunk:
                return
            yield chunk


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:  # so that nothing says it again, when it is not true any more
        loop.remove_reader(descriptor)
