"""Lets a running tool ask its client's user and model, and send them messages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, get_args, overload

from tools.core.asking.peer import Filled, Form, LogLevel, Peer, Root
from tools.core.client import NoReply, Prompt, Refusal, Reply, Sampler
from tools.core.errors import DeclinedError, UnavailableError

ValueT = TypeVar("ValueT")

Waiting = Callable[[], AbstractAsyncContextManager[None]]
"""Opens a context in which a tool waits for the answer to a question."""


class Asker:
    """The questions and messages that a running function can send to its client."""

    __slots__ = ()

    tool: str
    _waiting: Waiting

    @property
    def peer(self) -> Peer:
        """The client, as a function sees it."""
        raise NotImplementedError

    @property
    def sampler(self) -> Sampler | None:
        """Access to the client's model, or None."""
        raise NotImplementedError

    @overload
    async def ask(self, kind: type[ValueT], message: str) -> ValueT: ...

    @overload
    async def ask(self, kind: object, message: str) -> Any: ...  # noqa: ANN401  # as the kind is

    async def ask(self, kind: Any, message: str) -> Any:
        """Asks the client's user through a form; the call's deadline is paused meanwhile.

        Args:
            kind: The type of the answer: a model, dataclass or TypedDict of plain fields, or one
                text, number, bool, Literal or Enum.
            message: The text that the user reads.

        Raises:
            DeclinedError: If the user declines, or closes the form without an answer.
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
        """Shows the client's user a form, as `ask` does for a type."""
        async with self._waiting():
            return await self.peer.fill(self.tool, form)

    async def roots(self) -> list[Root]:
        """Asks the client for the directories it works in."""
        async with self._waiting():
            return await self.peer.roots(self.tool)

    async def sample(self, text: str, *, system: str = "", max_tokens: int = 1_000) -> Reply:
        """Asks a model: the client's, or else the one in the settings (`summaries.url`).

        Args:
            text: The prompt.
            system: The system prompt.
            max_tokens: Maximum length of the answer.

        Raises:
            DeclinedError: If the model, or its user, refuses.
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
        """Sends a log message to the client, and to the server's log.

        Args:
            level: From "debug" to "emergency"; the client chooses the levels it receives.
        """
        if level not in (levels := get_args(LogLevel)):
            raise ValueError(f"level: {level!r} is not one of {', '.join(levels)}.")
        await self.peer.log(self.tool, level, text)

    async def changed(self, uri: str) -> None:
        """Notifies the clients subscribed to a resource that it changed."""
        await self.peer.changed(uri)
