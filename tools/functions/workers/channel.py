"""Implements the worker's end of the connection to the server.

A spare process waits here, so it imports little: anyio would double what asyncio needs.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import Future
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TypeVar, cast

from tools.functions.workers.bounds import OF_FILES, Bounds, TooLongError
from tools.functions.workers.messages import Load, Message, encode
from tools.functions.workers.questions import Questions

CHUNK = 1 << 20
"""Bytes that are read at once."""

T = TypeVar("T")


class Channel:
    """Reserves the process's original pipes for messages, and redirects its output.

    Args:
        outgoing: The descriptor of messages to the server; the same for a socket.
    """

    def __init__(
        self, incoming: int, outgoing: int, *, output: int, bounds: Bounds = OF_FILES
    ) -> None:
        self._bounds = bounds
        self._incoming, self._outgoing = os.dup(incoming), os.dup(outgoing)
        self._turn = threading.Lock()
        self._reading = threading.Lock()
        self._begun = bytearray()
        self._messages: deque[Message] = deque()
        self._end: Future[None] | None = None
        self._serving: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._questions: Questions | None = None
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        cast("TextIOWrapper", sys.stdout).reconfigure(
            line_buffering=True, errors="backslashreplace"
        )

    def first(self) -> Load:
        """Returns the first message, which says what to load; no other follows it yet."""
        with open(self._incoming, "rb", closefd=False) as first:
            return Load(**json.loads(first.readline())["load"])

    def send(self, message: Message) -> None:
        """Sends a message, from any thread."""
        line = memoryview(encode(message, self._bounds))
        with self._turn:
            while line:
                line = line[os.write(self._outgoing, line) :]

    async def messages(self, questions: Questions) -> AsyncIterator[Message]:
        """Yields incoming messages, except answers to questions, until the server hangs up."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        self._serving, self._questions = (loop, came), questions
        loop.add_reader(self._incoming, self._take_in)
        try:
            while True:
                await came.wait()
                came.clear()
                while self._messages:
                    yield self._messages.popleft()
                if self._end is not None:
                    self._end.result()
                    return
        finally:
            loop.remove_reader(self._incoming)

    async def during(self, answered: Awaitable[T]) -> T:
        """Waits for an answer.

        In a thread with its own event loop, that loop also reads messages: the main loop may be
        blocked waiting for the thread.
        """
        loop = asyncio.get_running_loop()
        if self._serving is None or self._serving[0] is loop:
            return await answered
        incoming = os.dup(self._incoming)  # a duplicate for each answer awaited here
        loop.add_reader(incoming, self._take_in)
        try:
            return await answered
        finally:
            loop.remove_reader(incoming)
            os.close(incoming)

    def _take_in(self) -> None:
        """Reads available input, in whichever event loop notices it first."""
        with self._reading:
            if self._end is None and select.select([self._incoming], [], [], 0)[0]:
                try:
                    self._sort(os.read(self._incoming, CHUNK))
                except Exception as error:  # noqa: BLE001  # raised in the main loop
                    self._end = Future()
                    self._end.set_exception(error)
        if self._serving is not None:
            loop, came = self._serving
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(came.set)

    def _sort(self, chunk: bytes) -> None:
        """Passes answers to their questions, and queues other messages for the main loop."""
        questions = cast("Questions", self._questions)
        if not chunk:
            self._end = Future()
            self._end.set_result(None)
            questions.end()
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            message = OF_FILES.decode(bytes(self._begun + part))
            self._begun.clear()
            if "answer" in message:
                questions.take(message)
            else:
                self._messages.append(message)
        self._begun += rest
        if len(self._begun) > OF_FILES.longest:
            raise TooLongError(f"{OF_FILES.longest:,} bytes")
