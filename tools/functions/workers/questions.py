"""What a function asks the server from its worker, and the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from tools.core.errors import RateLimitedError, UnavailableError
from tools.functions.workers.messages import MOST_OPEN, Message, decode_error, encode_error

__all__ = ["Questions", "ended"]

Send = Callable[[Message], None]


class Questions:
    """The questions of all running calls, each open until it is answered.

    Args:
        send: Sends a message to the server.
    """

    def __init__(self, send: Send) -> None:
        self.send = send
        self._ids = count(1)
        self._open: dict[int, _Question] = {}

    async def ask(self, call: int, what: Message) -> Any:  # noqa: ANN401  # decoded JSON
        """What the server answers to a question of a call.

        Raises:
            ToolError: If that is a failure, or the call asks too much at once.
        """
        if sum(each.call == call for each in self._open.values()) >= MOST_OPEN:
            raise RateLimitedError(
                f"More than {MOST_OPEN} things are asked at once.",
                next_actions=["Ask fewer things at once."],
            )
        number = next(self._ids)
        question = self._open[number] = _Question(call)
        try:
            await asyncio.sleep(0)  # what is asked at once is sent at once
            self.send({"ask": call, "id": number, **what})
            await question.answered.wait()
        finally:
            del self._open[number]
            if not question.answer:  # cancelled: nobody waits any more
                self.send({"withdraw": call, "id": number})
        if "failure" in question.answer:
            raise decode_error(question.answer["failure"])
        return question.answer["value"]

    def take(self, message: Message) -> None:
        """Hands an answer to whoever asked."""
        with suppress(KeyError):  # withdrawn meanwhile
            self._open[message["answer"]].close(message)

    def end(self, call: int) -> None:
        """Fails what is still asked when the call is at its end: nobody answers it."""
        for question in self._open.values():
            if question.call == call:
                question.close({"failure": encode_error(ended())})


def ended() -> UnavailableError:
    """Why what a call has left behind is answered no more."""
    return UnavailableError("The call has ended, and asks nothing any more.")


class _Question:
    def __init__(self, call: int) -> None:
        self.call = call
        self.answered = asyncio.Event()
        self.answer: Message = {}

    def close(self, answer: Message) -> None:
        self.answer = answer
        self.answered.set()
