"""What a client is told when another server fails it."""

from __future__ import annotations

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.mcp.safe_json import utf8_text
from tools.core.errors import ToolError

__all__ = ["as_mcp_error"]


def as_mcp_error(server: str, error: Exception) -> MCPError:
    """The error of the protocol for whatever kept a server from answering.

    Args:
        server: Its name.
        error: What went wrong; an error that the server itself answered with stays as it is.
    """
    match error:
        case MCPError(code=types.CONNECTION_CLOSED):
            text = f"The server {server!r} ended its connection; ask again."
        case MCPError():
            return error
        case ToolError():
            text = " ".join([error.message, *error.next_actions])
        case TimeoutError():
            text = f"The server {server!r} gave no answer in time."
        case ValidationError():
            text = f"The server {server!r} answered with something that is not in the protocol."
        case _:
            text = f"The server {server!r} failed: {str(error) or type(error).__name__}"
    return MCPError(types.INTERNAL_ERROR, utf8_text(text))
