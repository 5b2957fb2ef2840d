"""Defines the client of a running call, as a function sees it."""

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
