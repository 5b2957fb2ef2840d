"""Answers that handlers of resources and prompts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tools.core.invisible import encodable

COMPLETIONS = 100
"""Maximum number of completion values, by the protocol."""

RESOURCE_NOT_FOUND = -32002
"""Error code of protocols up to 2025-11-25; 2026-07-28 uses invalid params (SEP-2164)."""


def no_resource_at(uri: str, ctx: ServerRequestContext[Any, Any]) -> MCPError:
    """Builds the error for an unknown resource, with the code of the client's protocol."""
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    code = types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
    shown = encodable(uri)
    return MCPError(code, f"Resource not found: {shown}", {"uri": shown})


def completion_of(values: Sequence[str]) -> types.CompleteResult:
    """Builds a completion with as many values as the protocol allows."""
    completion = types.Completion(
        values=list(map(encodable, values[:COMPLETIONS])),
        total=len(values),
        has_more=len(values) > COMPLETIONS,
    )
    return types.CompleteResult(completion=completion)
