"""What a function asks the server from its worker, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from typing import Any

import anyio

from tools.core.asking.peer import Filled, Form, LogLevel, Peer, Root
from tools.core.client import Prompt, Refusal, Reply
from tools.core.errors import RateLimitedError, UnavailableError
from tools.core.result import ToolResult
from tools.functions.workers.messages import MOST_OPEN, Message, decode_error, encode_error
from tools.functions.workers.offers import decode_result

__all__ = ["Questions", "ServerPeer"]

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
            await anyio.lowlevel.checkpoint()  # what is asked at once is sent at once
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
                question.close({"failure": encode_error(_ended())})


def _ended() -> UnavailableError:
    return UnavailableError("The call has ended, and asks nothing any more.")


class _Question:
    def __init__(self, call: int) -> None:
        self.call = call
        self.answered = anyio.Event()
        self.answer: Message = {}

    def close(self, answer: Message) -> None:
        self.answer = answer
        self.answered.set()


class ServerPeer(Peer):
    """The client of a call, and its model and the other tools, all reached through the server.

    Args:
        questions: The way to the server.
        call: The call.
    """

    kind = "server"
    at_once = 1
    state = ""

    def __init__(self, questions: Questions, call: int) -> None:
        self._questions = questions
        self._call = call
        self._is_over = False

    def end(self) -> None:
        """Answers nothing any more to what the call has left behind."""
        self._is_over = True
        self._questions.end(self._call)

    async def _ask(self, what: Message) -> Any:  # noqa: ANN401  # decoded JSON
        if self._is_over:
            raise _ended()
        return await self._questions.ask(self._call, what)

    async def fill(self, tool: str, form: Form) -> Filled:  # noqa: ARG002  # the server knows it
        """What the person at the client makes of a form."""
        return Filled(**await self._ask({"form": asdict(form)}))

    async def roots(self, tool: str) -> list[Root]:  # noqa: ARG002  # the same
        """The directories that the client works in."""
        return [Root(**each) for each in await self._ask({"roots": True})]

    async def log(self, tool: str, level: LogLevel, text: str) -> None:  # noqa: ARG002  # the same
        """Has the server tell what happens."""
        self._questions.send({"tell": self._call, "level": level, "text": text})
        await anyio.lowlevel.checkpoint()

    async def changed(self, uri: str) -> None:
        """Has the server tell that a resource changed."""
        self._questions.send({"changed": self._call, "uri": uri})
        await anyio.lowlevel.checkpoint()

    async def ask(self, prompts: Sequence[Prompt], *, state: str) -> list[Reply | Refusal | None]:  # noqa: ARG002  # the call goes on
        """A reply to each prompt."""
        return [Reply(**await self._ask({"prompt": asdict(each)})) for each in prompts]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Calls another tool."""
        made = {"tool": name, "arguments": arguments}
        return decode_result(await self._ask(made))
