"""Causes: why another server cannot be reached, in one sentence."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError

from server.mcp.visible import visible
from server.upstream.connections.link import Link
from tools.core.audit.redact import redacted_text
from tools.core.errors import ToolError, UpstreamError

__all__ = ["problem_of"]

LONGEST = 1_000
"""Characters of a reason that somebody else gives."""


async def problem_of(error: BaseException, link: Link | None) -> str:
    """What is told of a failure: what the server itself did, or else the exception.

    Args:
        error: What was raised; of a group the first that is no consequence of another.
        link: The way to the server, where there was one.

    Returns:
        The rest of a sentence that begins with the name of the server, without what looks like a
        secret, and nothing that steers a terminal.
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
