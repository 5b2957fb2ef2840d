"""The protocol's extension for tasks: its capability and parameters.

https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

EXTENSION = "io.modelcontextprotocol/tasks"

MISSING = MCPError(
    types.MISSING_REQUIRED_CLIENT_CAPABILITY,
    f"The request does not declare the extension {EXTENSION}.",
    {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
)


class TaskParams(types.RequestParams):
    """Parameters that name a task."""

    task_id: str


class CancelParams(TaskParams):
    """Parameters that name a task to cancel."""


class UpdateParams(TaskParams):
    """Answers to a task's questions, by their keys."""

    input_responses: dict[str, Any]


def declares_tasks(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Returns whether the client accepts a task as an answer."""
    said = ctx.session.client_capabilities
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and said is not None and EXTENSION in (said.extensions or {})


def check_header(ctx: ServerRequestContext[Any, Any], task_id: str) -> None:
    """Rejects a request over HTTP whose routing header names another task."""
    if not isinstance(ctx.request, Request):
        return
    if decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(
            types.HEADER_MISMATCH,
            f"The header {MCP_NAME_HEADER} does not match the request's taskId.",
        )
