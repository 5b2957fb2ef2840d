"""Calls of the tools of other servers."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from server.upstream.upstream import Upstream
from tools.core.context import RequestContext
from tools.core.errors import UpstreamError
from tools.core.spec import ToolFailure, ToolResult

__all__ = ["call"]


async def call(
    upstream: Upstream, own_name: str, arguments: dict[str, Any], context: RequestContext
) -> ToolResult:
    """Calls a tool of another server and hands on what it answers.

    Args:
        upstream: The server.
        own_name: What it calls the tool.
        arguments: As the caller gave them.
        context: Whose call it is.

    Raises:
        UnavailableError: If the server cannot be reached.
        UpstreamError: If it answers with an error of the protocol, or not as the protocol wants it.
    """
    connection = await upstream.connection(context.session_id)

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await context.report_progress(progress, total, message)

    try:
        answer = await connection.client.call_tool(own_name, arguments, progress_callback=report)
    except MCPError as error:
        raise UpstreamError(
            f"The server {upstream.name!r} refused: {error.error.message}"
        ) from error
    return _result(answer)


def _result(answer: types.CallToolResult) -> ToolResult:
    text = "\n".join(each.text for each in answer.content if isinstance(each, types.TextContent))
    if answer.is_error:
        failure = ToolFailure(error_type="upstream_failed", message=text)
        structured = failure.model_dump(mode="json")
    else:
        structured = answer.structured_content or {}
    return ToolResult(structured, text, is_error=bool(answer.is_error), verbatim=answer)
