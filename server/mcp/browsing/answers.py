"""What handlers of resources and prompts answer alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tools.core.invisible import encodable

COMPLETIONS = 100
"""Values that a client is offered at most, by the protocol."""

RESOURCE_NOT_FOUND = -32002
"""The code of protocols up to 2025-11-25; 2026-07-28 retired it for invalid params (SEP-2164)."""


def no_resource_at(uri: str, ctx: ServerRequestContext[Any, Any]) -> MCPError:
    """What a client is told where there is nothing, in the code of its protocol."""
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    code = types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
    shown = encodable(uri)
    return MCPError(code, f"Resource not found: {shown}", {"uri": shown})


def completion_of(values: Sequence[str]) -> types.CompleteResult:
    """As many of some values as the protocol lets a client be offered."""
    completion = types.Completion(
        values=list(map(encodable, values[:COMPLETIONS])),
        total=len(values),
        has_more=len(values) > COMPLETIONS,
    )
    return types.CompleteResult(completion=completion)
