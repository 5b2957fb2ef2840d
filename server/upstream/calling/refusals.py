"""Refusals: errors of the protocol with which another server answers a call."""

from __future__ import annotations

import json

import mcp_types as types
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from pydantic import ValidationError

from server.mcp.asking.channels import can_ask
from server.upstream.calling.question_text import UnshowableError, presented_page
from tools.core.errors import InvalidArgumentsError, ToolError, UpstreamError
from tools.core.invisible import encodable

LONGEST = 2_000
"""Characters of what a server says of its refusal."""

LONGEST_DATA = 500


def for_client(
    server: str, error: MCPError, client: types.ClientCapabilities | None
) -> MCPError | None:
    """An error as it reaches a client that acts on it itself; None if it tells the model of it.

    Args:
        server: Name of the server.
        error: What it answered.
        client: What the client can be asked.
    """
    if error.code == types.URL_ELICITATION_REQUIRED:
        return _pages(server, error, client)
    if error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY or _is_of_state(error):
        return error
    return None


def refusal(server: str, error: MCPError) -> ToolError:
    """The failure of a call that a server refused.

    Args:
        server: Its name.
        error: What it answered.
    """
    said = encodable(error.error.message[:LONGEST]).rstrip(".")
    if error.error.data not in (None, ""):
        data = json.dumps(error.error.data, ensure_ascii=False, default=str)
        said += f" {encodable(data[:LONGEST_DATA])}"
    if error.code == types.INVALID_PARAMS:
        return InvalidArgumentsError(f"The server {server!r} does not accept this: {said}.")
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
        f"The server {server!r} answered with something that is not a tool's result:"
        f" {where}: {first['msg']}."
    )


def _pages(
    server: str, error: MCPError, client: types.ClientCapabilities | None
) -> MCPError | None:
    """The web pages that a person has to see first, each as the client may show it."""
    try:
        asked = types.ElicitationRequiredErrorData.model_validate(error.error.data, by_name=False)
        pages = [presented_page(server, each) for each in asked.elicitations]
    except (ValidationError, UnshowableError):
        return None
    if not (pages and can_ask(client, types.ElicitRequest(params=pages[0]))):
        return None
    return UrlElicitationRequiredError(pages, f"The server {server!r} needs you on a web page.")


def _is_of_state(error: MCPError) -> bool:
    """Whether a server refuses the state that came back, as the SDK's servers say it."""
    data = error.error.data
    said = data.get("reason") if isinstance(data, dict) else None
    return error.code == types.INVALID_PARAMS and said == "invalid_request_state"
