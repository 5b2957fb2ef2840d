"""Lets a running tool ask its client's user and model, and send them messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, get_args, overload

import anyio

from tools.core.client import NoReply, Prompt, Refusal, Reply, Sampler
from tools.core.errors import DeclinedError, UnavailableError
from tools.core.unicode_safety import log_line


class Deadline(Protocol):
    """A call's remaining time, which pauses while a user answers a question."""

    def paused(self) -> AbstractContextManager[None]:
        """Pauses it until the context ends; questions may overlap."""


LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""From the least to the most severe (RFC 5424)."""

Capability = Literal["elicitation", "roots", "sampling"]
"""The client capabilities that tools use, by their protocol names."""

_LOGGED_AS: Mapping[LogLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""More severe levels are logged as critical."""

_logger = logging.getLogger("toolcrib.functions")


@dataclass(frozen=True, slots=True)
class Form:
    """A form for a user."""

    message: str
    schema: Mapping[str, Any]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Filled:
    """The user's response to a form."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Root:
    """A directory that the client works in."""

    uri: str
    name: str


class Peer:
    """The peer of a call that no client made."""

    async def fill(self, tool: str, form: Form) -> Filled:  # noqa: ARG002  # a client's form
        """Shows a form to the client's user and returns the response."""
        await anyio.lowlevel.checkpoint()
        raise UnavailableError(
            f"{tool} cannot ask the user: no MCP client made this call.",
            next_actions=[f"Call {tool} from a client that shows forms (elicitation)."],
        )

    async def roots(self, tool: str) -> list[Root]:
        """Returns the directories that the client works in."""
        await anyio.lowlevel.checkpoint()
        error = UnavailableError(
            f"{tool} needs the client's working directories, but the client lists none."
        )
        raise self.without("roots", error)

    def without(self, capability: Capability, error: UnavailableError) -> UnavailableError:  # noqa: ARG002  # no client's
        """Returns the error for a capability that the client lacks."""
        return error

    async def log(self, tool: str, level: LogLevel, text: str) -> None:
        """Logs a tool's message; without a client only to the server's log."""
        _logger.log(_LOGGED_AS.get(level, logging.CRITICAL), "%s: %s", tool, log_line(text))
        await anyio.lowlevel.checkpoint()

    async def changed(self, uri: str) -> None:  # noqa: ARG002  # no subscribers
        """Notifies the subscribers of a resource that it changed."""
        await anyio.lowlevel.checkpoint()


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
        from tools.core.elicitation.forms import FormOf

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
