"""What a function asks the server from its worker, and the answers."""

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
"""Seconds between two looks whether another thread may ask."""

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
        self._open: dict[int, tuple[int, Future[Message]]] = {}
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._places = WeakKeyDictionary()

    async def ask_in_turn(self, call: int, what: Message) -> Any:  # noqa: ANN401  # decoded JSON
        """The same as `ask`, but waits while too much is asked at once."""
        loop = asyncio.get_running_loop()
        async with self._places.setdefault(loop, asyncio.Semaphore(MOST_OPEN)):
            while self._count(call) >= MOST_OPEN:  # noqa: ASYNC110  # no event of this loop: other threads ask
                await asyncio.sleep(PAUSE)
            return await self.ask(call, what)

    async def ask(self, call: int, what: Message) -> Any:  # noqa: ANN401  # decoded JSON
        """What the server answers to a question of a call."""
        if self._count(call) >= MOST_OPEN:
            raise RateLimitedError(
                f"More than {MOST_OPEN} things are asked at once.",
                next_actions=["Ask fewer things at once."],
            )
        number, answered = next(self._ids), Future[Message]()
        self._open[number] = call, answered
        answer: Message = {}
        try:
            await asyncio.sleep(0)  # what is asked at once is sent at once
            self.send({"ask": call, "id": number, **what})
            answer = await self._during(asyncio.wrap_future(answered))
        finally:
            del self._open[number]
            if not answer:  # cancelled: nobody waits any more
                self.send({"withdraw": call, "id": number})
        if "failure" in answer:
            raise decode_error(answer["failure"])
        return answer["value"]

    def _count(self, call: int) -> int:
        return sum(each == call for each, _ in list(self._open.values()))

    def take(self, message: Message) -> None:
        """Hands an answer to whoever asked."""
        _, answered = self._open.get(message["answer"], (0, None))
        if answered is not None:  # else it was withdrawn meanwhile
            _close(answered, message)

    def end(self, call: int | None = None) -> None:
        """Fails what a call still asks at its end, or every call: nobody answers it."""
        for of, answered in list(self._open.values()):
            if call in {None, of}:
                _close(answered, {"failure": encode_error(ended())})


def ended() -> UnavailableError:
    """Why what a call has left behind is answered no more."""
    return UnavailableError("The call has ended, and asks nothing any more.")


def _close(answered: Future[Message], answer: Message) -> None:
    with suppress(InvalidStateError):  # it was given up, or answered before
        answered.set_result(answer)
