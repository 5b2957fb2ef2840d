"""Implements a call's client in a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any
from weakref import WeakSet

import anyio

from tools.core.asking.peer import Filled, Form, LogLevel, Peer, Root
from tools.core.client import NoReply, Prompt, Refusal, Reply
from tools.core.errors import UnavailableError
from tools.core.result import ToolResult, decode_result
from tools.functions.workers.messages import LONGEST_TOLD, Message
from tools.functions.workers.questions import Questions, ended_error

CURRENT: ContextVar[ServerPeer] = ContextVar("CURRENT")
"""The peer of the call that runs here."""


class ServerPeer(Peer):
    """A call's client, its model and the other tools, all reached through the server."""

    kind = "server"
    at_once = 1
    state = ""

    def __init__(self, questions: Questions, call: int) -> None:
        self._questions = questions
        self._call = call
        RUNNING.add(self)

    def end(self) -> None:
        """Ends the call: its remaining and later questions fail."""
        RUNNING.discard(self)
        self._questions.end(self._call)

    async def _ask(self, what: Message, *, in_turn: bool = False) -> Any:  # noqa: ANN401  # decoded JSON
        if self not in RUNNING:
            raise ended_error()
        ask = self._questions.ask_in_turn if in_turn else self._questions.ask
        return await ask(self._call, what)

    async def fill(self, tool: str, form: Form) -> Filled:  # noqa: ARG002  # known to the server
        """Shows a form to the client's user and returns the response."""
        return Filled(**await self._ask({"form": asdict(form)}))

    async def roots(self, tool: str) -> list[Root]:  # noqa: ARG002  # the same
        """Returns the directories that the client works in."""
        return [Root(**each) for each in await self._ask({"roots": True})]

    async def log(self, tool: str, level: LogLevel, text: str) -> None:  # noqa: ARG002  # the same
        """Asks the server to log a message for the client."""
        told = {"tell": self._call, "level": level, "text": text[:LONGEST_TOLD]}
        self._questions.send(told)
        await anyio.lowlevel.checkpoint()

    async def changed(self, uri: str) -> None:
        """Asks the server to announce that a resource changed."""
        self._questions.send({"changed": self._call, "uri": uri})
        await anyio.lowlevel.checkpoint()

    async def ask(
        self,
        prompts: Sequence[Prompt],
        *,
        state: str,  # noqa: ARG002  # the call is not repeated
    ) -> list[Reply | Refusal | NoReply]:
        """Returns a reply to each prompt."""
        return [Reply(**await self._ask({"prompt": asdict(each)})) for each in prompts]

    async def call(self, _context: object, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Calls another tool; the server knows the context."""
        return decode_result(await self.answer(name, arguments))

    async def answer(
        self, name: str, arguments: Mapping[str, Any], *, in_turn: bool = False
    ) -> Message:
        """Returns another tool's encoded result; `in_turn` waits for its turn to ask."""
        asked = {"tool": name, "arguments": arguments}
        answer: Message = await self._ask(asked, in_turn=in_turn)
        return answer


RUNNING: WeakSet[ServerPeer] = WeakSet()
"""The peers of all running calls."""


def current_peer() -> ServerPeer:
    """Returns the peer of the call that runs here, or of the only one in an unrelated thread."""
    peer = CURRENT.get(None)
    running = [peer] if peer else list(RUNNING)
    if len(running) == 1:
        return running[0]
    raise UnavailableError(
        "This thread does not belong to a running call, or could belong to several.",
        next_actions=["Start it with contextvars.copy_context().run, or use asyncio.to_thread."],
    )
