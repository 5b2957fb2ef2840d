"""Answers a function's questions on the server's side, each in its own task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict

import anyio
from anyio.abc import TaskGroup

from tools.core.asking.peer import Form
from tools.core.context import RequestContext
from tools.core.errors import as_tool_error
from tools.core.result import encode_result
from tools.functions.workers.messages import MOST_OPEN, Message, encode_error


class Answers:
    """Answers the questions of one running call, and passes on its messages to the client.

    Args:
        answered: Called with the number of each closed question.
    """

    def __init__(
        self,
        context: RequestContext,
        group: TaskGroup,
        send: Callable[[Message], Awaitable[None]],
        answered: Callable[[int], None],
    ) -> None:
        self._context = context
        self._group = group
        self._send = send
        self._answered = answered
        self._open: dict[int, anyio.CancelScope] = {}
        self._places = anyio.Semaphore(MOST_OPEN)

    async def take(self, message: Message) -> None:
        """Handles a message that the worker sends during its call."""
        if "ask" in message:
            await self._places.acquire()  # waits only if the worker's own limit was bypassed
            self._group.start_soon(self._answer, message)
        elif "withdraw" in message:
            if (scope := self._open.get(message["id"])) is not None:
                scope.cancel()
        elif "tell" in message:
            await self._context.log(message["level"], message["text"])
        elif "changed" in message:
            await self._context.changed(message["uri"])
        else:
            done, total, text = message["done"], message["total"], message["message"]
            await self._context.report_progress(done, total, text)

    async def _answer(self, message: Message) -> None:
        number = message["id"]
        with anyio.CancelScope() as self._open[number]:
            try:
                await self._send({"answer": number, "value": await self._value(message)})
            except Exception as error:  # noqa: BLE001  # the function gets any failure
                failure = encode_error(as_tool_error(error, self._context.tool))
                await self._send({"answer": number, "failure": failure})
        del self._open[number]
        self._places.release()
        self._answered(number)

    async def _value(self, message: Message) -> object:
        if "form" in message:
            return asdict(await self._context.fill(Form(**message["form"])))
        if "roots" in message:
            return [asdict(each) for each in await self._context.roots()]
        if "prompt" in message:
            prompt = message["prompt"]
            reply = await self._context.sample(
                prompt["text"], system=prompt["system"], max_tokens=prompt["max_tokens"]
            )
            return asdict(reply)
        result = await self._context.result_of(message["tool"], message["arguments"])
        return encode_result(result)
