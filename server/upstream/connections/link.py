"""Links: the transport to another server, and why it failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType

import anyio
import mcp_types as types
from mcp.client._transport import TransportStreams  # of public signatures
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.mcp.visible import visible
from tools.core.audit.secret_patterns import redacted_text
from tools.core.errors import ToolError, UnavailableError, UpstreamError
from tools.core.unicode_safety import encodable
from tools.sandbox.secrets.redaction import Redaction

MOST_BYTES = 32 * 2**20
"""Maximum bytes of a message; more indicates an attack or a defect."""

LONGEST = 1_000
"""Maximum length of a reason from outside."""


class SignInRequiredError(UnavailableError):
    """A person must sign in to the server."""


def sign_in_advice(server: str, command: str = "toolcrib") -> list[str]:
    """Returns what to do about a server that requires sign-in."""
    return [f"Ask the user to run `{command} servers login {server}`, then try again."]


class Link(ABC):
    """A transport of the SDK that detects its end; entered once."""

    def __init__(self) -> None:
        self.ended = anyio.Event()  # set once nothing more can be received
        self.received = 0  # bytes so far
        self.is_forgotten = (
            False  # the server has lost the session, and did not execute the last request
        )
        self.redaction = Redaction()  # of the values that its settings refer to
        self.sign_in_problem = ""  # why a person must sign in, as the rest of a sentence
        self._stack = AsyncExitStack()

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Opens the streams of a new session; sets `ended` once nothing more can be received."""

    @property
    def last_words(self) -> str:
        """The server's last output outside of the protocol; empty if unknown."""
        return ""

    @abstractmethod
    async def explain(self) -> str:
        """Returns what the server did that may have caused a failure; empty if unknown."""

    def refusals(self, errors: str) -> tuple[str, ...]:  # noqa: ARG002  # most are not confined
        """Returns what the server's confinement refused to it, by its errors; empty if unknown."""
        return ()

    async def __aenter__(self) -> TransportStreams:
        return await self._stack.enter_async_context(self.open())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)


def last_words_text(link: Link) -> str:
    """Returns a server's last output as the end of a sentence; empty if unknown."""
    return f"; its last lines: {link.last_words}" if link.last_words else ""


def as_mcp_error(server: str, error: Exception) -> MCPError:
    """Converts a server's failure to an error of the protocol; its own error stays unchanged."""
    match error:
        case MCPError(code=types.CONNECTION_CLOSED):
            text = f"The server {server!r} ended its connection; ask again."
        case MCPError():
            return error
        case ToolError():
            text = " ".join([error.message, *error.next_actions])
        case TimeoutError():
            text = f"The server {server!r} did not answer in time."
        case ValidationError():
            text = f"The server {server!r} sent an invalid answer."
        case _:
            text = f"The server {server!r} failed: {str(error) or type(error).__name__}"
    return MCPError(types.INTERNAL_ERROR, encodable(text))


async def problem_of(error: BaseException, link: Link | None) -> str:
    """Describes what the server did, or else the first exception of a group that no other caused.

    Returns the rest of a sentence that begins with the name of the server, without secrets and
    control characters.
    """
    cause = await _cause(error, link)
    known = cause if link is None else link.redaction.text(cause)
    return redacted_text(visible(known), LONGEST).rstrip(".")


async def _cause(cause: BaseException, link: Link | None) -> str:
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, ToolError):
        said = cause.message.rstrip(".")
        return said if isinstance(cause, UpstreamError) else f"cannot be used: {said}"
    if link is not None and (known := await link.explain()):
        return known
    if isinstance(cause, TimeoutError):
        return "it took too long"
    if isinstance(cause, MCPError):
        return f"refused: {cause.error.message[: 2 * LONGEST]}"
    return f"failed: {str(cause)[: 2 * LONGEST] or type(cause).__name__}"
