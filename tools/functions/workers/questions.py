"""What a function asks the server from its worker, and the answers."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

from tools.core.errors import RateLimitedError, UnavailableError
from tools.functions.workers.messages import MOST_OPEN, Message, decode_error, encode_error

__all__ = ["Places", "Questions", "ended"]

Send = Callable[[Message], None]
During = Callable[[Awaitable[Message]], Awaitable[Message]]


class Questions:
    """The questions of all running calls, each open until it is answered, in whatever thread.

    Args:
        send: Sends a message to the server.
        during: Waits for an answer, and takes in what comes meanwhile.
    """

    def __init__(self, send: Send, during: During) -> None:
        self.send = send
        self._during = during
        self._ids = count(1)
        self._lock = threading.Lock()
        self._open: dict[int, tuple[int, Future[Message]]] = {}

    async def ask(self, call: int, what: Message) -> Any:  # noqa: ANN401  # decoded JSON
        """What the server answers to a question of a call.

        Raises:
            ToolError: If that is a failure, or the call asks too much at once.
        """
        number, answered = next(self._ids), Future[Message]()
        with self._lock:
            if sum(each == call for each, _ in self._open.values()) >= MOST_OPEN:
                raise RateLimitedError(
                    f"More than {MOST_OPEN} things are asked at once.",
                    next_actions=["Ask fewer things at once."],
                )
            self._open[number] = call, answered
        answer: Message = {}
        try:
            await asyncio.sleep(0)  # what is asked at once is sent at once
            self.send({"ask": call, "id": number, **what})
            answer = await self._during(asyncio.wrap_future(answered))
        finally:
            with self._lock:
                del self._open[number]
            if not answer:  # cancelled: nobody waits any more
                self.send({"withdraw": call, "id": number})
        if "failure" in answer:
            raise decode_error(answer["failure"])
        return answer["value"]

    def take(self, message: Message) -> None:
        """Hands an answer to whoever asked."""
        with self._lock:
            _, answered = self._open.get(message["answer"], (0, None))
        if answered is not None:  # else it was withdrawn meanwhile
            _close(answered, message)

    def end(self, call: int | None = None) -> None:
        """Fails what a call still asks at its end, or every call: nobody answers it."""
        with self._lock:
            left = [each for of, each in self._open.values() if call in {None, of}]
        for answered in left:
            _close(answered, {"failure": encode_error(ended())})


class Places:
    """As many places as a call may ask for things at once: whoever finds none waits, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = MOST_OPEN
        self._waiting: deque[Future[None]] = deque()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Holds one."""
        place = Future[None]()
        with self._lock:
            self._waiting.append(place)
        self._give(0)
        try:
            await asyncio.wrap_future(place)
        except BaseException:
            if not place.cancel():  # it was given just now
                self._give(1)
            raise
        try:
            yield
        finally:
            self._give(1)

    def _give(self, more: int) -> None:
        given: list[Future[None]] = []
        with self._lock:
            self._free += more
            while self._free and self._waiting:
                place = self._waiting.popleft()
                if place.set_running_or_notify_cancel():
                    self._free -= 1
                    given.append(place)
        for place in given:
            place.set_result(None)


def ended() -> UnavailableError:
    """Why what a call has left behind is answered no more."""
    return UnavailableError("The call has ended, and asks nothing any more.")


def _close(answered: Future[Message], answer: Message) -> None:
    with suppress(InvalidStateError):  # it was given up, or answered before
        answered.set_result(answer)
