"""Describes failures of other servers: why one is unreachable, and what its client gets."""

from __future__ import annotations

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.mcp.visible import visible
from server.upstream.connections.link import Link
from tools.core.audit.redact import redacted_text
from tools.core.errors import ToolError, UpstreamError
from tools.core.invisible import encodable

LONGEST = 1_000
"""Maximum length of a reason from outside."""


def as_mcp_error(server: str, error: Exception) -> MCPError:
    """Converts a server's failure to an error of the protocol.

    Args:
        server: The name of the server.
        error: The failure; the server's own error stays unchanged.
    """
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
    """Describes a failure: what the server itself did, or else the exception.

    Args:
        error: The exception; of a group, the first that no other caused.
        link: The transport to the server, if there was one.

    Returns:
        The rest of a sentence that begins with the name of the server, without secrets and
         control characters.
    """
    return redacted_text(visible(await _cause(error, link)), LONGEST)


async def _cause(error: BaseException, link: Link | None) -> str:
    cause = _first(error)
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


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
