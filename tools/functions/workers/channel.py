"""Implements the worker's end of the connection to the server, and its questions.

A spare process waits here, so it imports little: anyio would double what asyncio needs.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import select
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from io import TextIOWrapper
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from tools.core.errors import RateLimitedError, UnavailableError
from tools.functions.workers.messages import (
    MOST_OPEN,
    OF_FILES,
    Bounds,
    Lines,
    Load,
    Message,
    decode_error,
    encode_error,
)

CHUNK = 1 << 20  # bytes that are read at once

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
        self._lines = Lines(OF_FILES)
        self._messages: deque[Message] = deque()
        self._end: Future[None] | None = None
        self._serving: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self.questions = Questions(self)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        cast("TextIOWrapper", sys.stdout).reconfigure(
            line_buffering=True, errors="backslashreplace"
        )

    def first(self) -> Load:
        """Limits the memory as the first message says, which also says what to load."""
        with open(self._incoming, "rb", closefd=False) as first:  # no other message follows yet
            load = Load(**json.loads(first.readline())["load"])
        # Allocations fail here before the system runs out of memory.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most, hard = load.memory_bytes, resource.getrlimit(resource.RLIMIT_DATA)[1]
        if most and (hard == resource.RLIM_INFINITY or most < hard):
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        return load

    def send(self, message: Message) -> None:
        """Sends a message, from any thread."""
        line = memoryview(self._bounds.encode(message))
        with self._turn:
            while line:
                line = line[os.write(self._outgoing, line) :]

    async def messages(self) -> AsyncIterator[Message]:
        """Yields incoming messages, except answers to questions, until the server hangs up."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        self._serving = loop, came
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
        if not chunk:
            self._end = Future()
            self._end.set_result(None)
            self.questions.end()
        for line in self._lines.feed(chunk):
            message = OF_FILES.decode(line)
            if "answer" in message:
                self.questions.take(message)
            else:
                self._messages.append(message)


PAUSE = 0.01  # seconds between checks of whether another thread may ask


class Questions:
    """The open questions of all running calls, from any thread."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._ids = count(1)
        self._open: dict[int, tuple[int, Future[Message]]] = {}
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._places = WeakKeyDictionary()

    async def ask_in_turn(self, call: int, what: Message) -> Any:  # noqa: ANN401  # decoded JSON
        """Does the same as `ask`, but waits while too many questions are open."""
        loop = asyncio.get_running_loop()
        async with self._places.setdefault(loop, asyncio.Semaphore(MOST_OPEN)):
            while self._count(call) >= MOST_OPEN:  # noqa: ASYNC110  # other threads ask, so this loop has no event
                await asyncio.sleep(PAUSE)
            return await self.ask(call, what)

    async def ask(self, call: int, what: Message) -> Any:  # noqa: ANN401  # decoded JSON
        """Asks the server a question on behalf of a call and returns the answer."""
        if self._count(call) >= MOST_OPEN:
            raise RateLimitedError(
                f"More than {MOST_OPEN} questions are open at once.",
                next_actions=["Ask fewer questions at once."],
            )
        number, answered = next(self._ids), Future[Message]()
        self._open[number] = call, answered
        answer: Message = {}
        try:
            await asyncio.sleep(0)  # lets questions asked together be sent together
            self._channel.send({"ask": call, "id": number, **what})
            answer = await self._channel.during(asyncio.wrap_future(answered))
        finally:
            del self._open[number]
            if not answer:  # cancelled
                self._channel.send({"withdraw": call, "id": number})
        if "failure" in answer:
            raise decode_error(answer["failure"])
        return answer["value"]

    def _count(self, call: int) -> int:
        return sum(each == call for each, _ in list(self._open.values()))

    def take(self, message: Message) -> None:
        """Passes an answer to its question."""
        _, answered = self._open.get(message["answer"], (0, None))
        if answered is not None:  # else it was withdrawn meanwhile
            _close(answered, message)

    def end(self, call: int | None = None) -> None:
        """Fails the open questions of a call that ended, or of all calls."""
        for of, answered in list(self._open.values()):
            if call in {None, of}:
                _close(answered, {"failure": encode_error(ended_error())})


def ended_error() -> UnavailableError:
    """Returns the error for questions after the end of their call."""
    return UnavailableError("The call has ended and cannot ask any more questions.")


def _close(answered: Future[Message], answer: Message) -> None:
    with suppress(InvalidStateError):  # cancelled, or already answered
        answered.set_result(answer)
