"""Sends a worker's questions to the server, and passes the answers back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from tools.core.errors import RateLimitedError, UnavailableError
from tools.functions.workers.messages import MOST_OPEN, Message, decode_error, encode_error

PAUSE = 0.01
"""Seconds between checks of whether another thread may ask."""

Send = Callable[[Message], None]
During = Callable[[Awaitable[Message]], Awaitable[Message]]


class Questions:
    """The open questions of all running calls, from any thread."""

    def __init__(self, send: Send, during: During) -> None:
        self.send = send
        self._during = during
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
            self.send({"ask": call, "id": number, **what})
            answer = await self._during(asyncio.wrap_future(answered))
        finally:
            del self._open[number]
            if not answer:  # cancelled
                self.send({"withdraw": call, "id": number})
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
