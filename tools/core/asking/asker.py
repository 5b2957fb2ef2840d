"""The asker: a running tool, which asks the person and the model of its client, and tells them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, get_args, overload

from tools.core.asking.peer import Filled, Form, LogLevel, Peer, Root
from tools.core.client import NoReply, Prompt, Refusal, Reply, Sampler
from tools.core.errors import DeclinedError, UnavailableError

ValueT = TypeVar("ValueT")

Waiting = Callable[[], AbstractAsyncContextManager[None]]
"""What a tool is in while somebody thinks about its question."""


class Asker:
    """What a function can ask and tell while it runs.

    Attributes:
        tool: The tool that is running.
        peer: Its client.
        sampler: The way to a model; None where there is none.
    """

    __slots__ = ()

    tool: str
    peer: Peer
    sampler: Sampler | None
    _waiting: Waiting

    @overload
    async def ask(self, kind: type[ValueT], message: str) -> ValueT: ...

    @overload
    async def ask(self, kind: object, message: str) -> Any: ...  # noqa: ANN401  # as the kind is

    async def ask(self, kind: Any, message: str) -> Any:
        """Asks the person at the client, by a form; the tool's time stands still meanwhile.

        Args:
            kind: What is asked for: a model, dataclass or TypedDict of plain fields, or one text,
                number, bool, Literal or Enum.
            message: What the person reads.

        Returns:
            What they wrote.

        Raises:
            DeclinedError: If they say no, or close the form without an answer.
        """
        from tools.core.asking.forms import FormOf

        form = FormOf(kind)
        filled = await self.fill(Form(message, form.schema, form.name))
        if filled.action == "decline":
            raise DeclinedError(
                f"{self.tool} asked the user, who declined.",
                next_actions=["Ask the user what to do instead; do not ask the same again."],
            )
        if filled.action == "cancel" or not form.is_answered(filled.content):
            raise DeclinedError(
                f"{self.tool} asked the user, who closed the question without an answer.",
                dismissed=True,
                next_actions=["Ask the user in the conversation, or call again to ask once more."],
            )
        return form.value(filled.content)

    async def fill(self, form: Form) -> Filled:
        """Has the person at the client fill in a form, as `ask` does with that of a type."""
        async with self._waiting():
            return await self.peer.fill(self.tool, form)

    async def roots(self) -> list[Root]:
        """Asks which directories the client works in."""
        async with self._waiting():
            return await self.peer.roots(self.tool)

    async def sample(self, text: str, *, system: str = "", max_tokens: int = 1_000) -> Reply:
        """Asks a model: the client's, else that of the settings (`summaries.url`).

        Args:
            text: What it is to answer.
            system: What it is to do.
            max_tokens: How long its answer may be.

        Raises:
            DeclinedError: If the model, or the person who has it, refuses.
        """
        if self.sampler is None:
            error = UnavailableError(
                f"{self.tool} wanted to ask a model, but the client offers none (sampling), and"
                " the settings name none.",
                next_actions=["Ask the user about the setting summaries.url."],
            )
            raise self.peer.without("sampling", error)
        async with self._waiting():
            [reply] = await self.sampler.ask([Prompt(system, text, max_tokens)], state="")
        if isinstance(reply, Refusal):
            raise DeclinedError(f"{self.tool} asked a model, but {reply.by} refused.")
        if isinstance(reply, NoReply):
            raise UnavailableError(f"{self.tool} asked a model, which gave no answer.")
        return reply

    async def log(self, level: LogLevel, text: str) -> None:
        """Tells the client, and the server's log, what happens.

        Args:
            level: From "debug" to "emergency"; the client hears what it wants to.
            text: What happens.

        Raises:
            ValueError: If there is no such level.
        """
        if level not in (levels := get_args(LogLevel)):
            raise ValueError(f"level: {level!r} is none of {', '.join(levels)}.")
        await self.peer.log(self.tool, level, text)

    async def changed(self, uri: str) -> None:
        """Tells the clients that listen to a resource that it changed."""
        await self.peer.changed(uri)
