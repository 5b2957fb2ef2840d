"""Refusals: errors of the protocol with which another server answers a call."""

from __future__ import annotations

import json

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.wire import utf8_text
from tools.core.errors import InvalidArgumentsError, ToolError, UpstreamError

__all__ = ["is_for_client", "no_result", "refusal"]

FOR_THE_CLIENT = frozenset(
    {types.URL_ELICITATION_REQUIRED, types.MISSING_REQUIRED_CLIENT_CAPABILITY}
)
"""Errors that clients act on themselves."""

LONGEST = 2_000
"""Characters of what a server says of its refusal."""

LONGEST_DATA = 500


def is_for_client(error: MCPError) -> bool:
    """Whether clients act on an error themselves: then it reaches the client as it is."""
    return error.code in FOR_THE_CLIENT or _is_of_state(error)


def refusal(server: str, error: MCPError) -> ToolError:
    """The failure of a call that a server refused.

    Args:
        server: Its name.
        error: What it answered.
    """
    said = utf8_text(error.error.message[:LONGEST]).rstrip(".")
    if error.error.data not in (None, ""):
        data = json.dumps(error.error.data, ensure_ascii=False, default=str)
        said += f" {utf8_text(data[:LONGEST_DATA])}"
    if error.code == types.INVALID_PARAMS:
        return InvalidArgumentsError(f"The server {server!r} does not take this: {said}.")
    return UpstreamError(f"The server {server!r} refused: {said} (error {error.code}).")


def no_result(server: str, error: ValidationError) -> ToolError:
    """The failure of a call that was answered with what is no result.

    Args:
        server: Its name.
        error: What is wrong with the answer.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))[:LONGEST_DATA]
    return UpstreamError(
        f"The server {server!r} answered with what is no result of a tool: {where}: {first['msg']}."
    )


def _is_of_state(error: MCPError) -> bool:
    """Whether a server refuses the state that came back, as the SDK's servers say it."""
    data = error.error.data
    said = data.get("reason") if isinstance(data, dict) else None
    return error.code == types.INVALID_PARAMS and said == "invalid_request_state"
