"""The peer of a running call: the client, as a function speaks to it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import anyio

from tools.core.errors import UnavailableError
from tools.core.invisible import log_line

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""From the least to the most severe (RFC 5424)."""

Capability = Literal["elicitation", "roots", "sampling"]
"""What a client may offer to a tool, as the protocol names it."""

_LOGGED_AS: Mapping[LogLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""What is worse is critical."""

_logger = logging.getLogger("toolcrib.functions")


@dataclass(frozen=True, slots=True)
class Form:
    """A form that a person fills in.

    Attributes:
        message: What they are asked.
        schema: The fields, as the protocol's forms have them.
        name: What the form is called; empty where it has no name of its own.
    """

    message: str
    schema: Mapping[str, Any]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Filled:
    """What a person did with a form.

    Attributes:
        action: Whether they sent it, said no, or closed it.
        content: What they wrote.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Root:
    """A directory that the client works in.

    Attributes:
        uri: Where it is, as the client says it.
        name: What people call it; empty where nobody says.
    """

    uri: str
    name: str


class Peer:
    """Nobody: what a call has that no client made."""

    async def fill(self, tool: str, form: Form) -> Filled:  # noqa: ARG002  # a client's form
        """What a person makes of a form.

        Args:
            tool: Which tool asks; the person reads it.
            form: What it asks.
        """
        await anyio.lowlevel.checkpoint()
        raise UnavailableError(
            f"{tool} wanted to ask the user something, but nobody can be asked here: no MCP client"
            " made this call.",
            next_actions=[f"Call {tool} from a client that shows forms (elicitation)."],
        )

    async def roots(self, tool: str) -> list[Root]:
        """The directories that the client works in."""
        await anyio.lowlevel.checkpoint()
        error = UnavailableError(
            f"{tool} asked which directories the client works in: it tells none."
        )
        raise self.without("roots", error)

    def without(self, capability: Capability, error: UnavailableError) -> UnavailableError:  # noqa: ARG002  # no client's
        """The error of a tool for want of what its client does not offer."""
        return error

    async def log(self, tool: str, level: LogLevel, text: str) -> None:
        """Tells what happens in a tool; here to the log alone."""
        _logger.log(_LOGGED_AS.get(level, logging.CRITICAL), "%s: %s", tool, log_line(text))
        await anyio.lowlevel.checkpoint()

    async def changed(self, uri: str) -> None:  # noqa: ARG002  # nobody listens
        """Tells whoever listens that a resource changed."""
        await anyio.lowlevel.checkpoint()
