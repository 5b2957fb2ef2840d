"""The tools of other servers as tools of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types

from server.gateway_settings import ServerSettings
from server.upstream.naming import exposed_name
from tools.core.context import RequestContext
from tools.core.spec import Effect, ToolResult, ToolScope, ToolSpec

__all__ = ["Invoke", "to_spec"]

Invoke = Callable[[dict[str, Any], RequestContext], Awaitable[ToolResult]]

_ANYTHING = frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.EXTERNAL})


def to_spec(
    server: str,
    tool: types.Tool,
    settings: ServerSettings,
    invoke: Invoke,
    *,
    barred: str = "",
) -> ToolSpec:
    """A tool of another server as one of ours.

    Args:
        server: Name of the server in the settings.
        tool: Its definition, as the server lists it.
        settings: Those of the server.
        invoke: Calls it.
        barred: Why it may not be called now.
    """
    name = exposed_name(server, tool.name)
    said = (tool.annotations if settings.trusted else None) or types.ToolAnnotations()
    reads = bool(said.read_only_hint)
    return ToolSpec(
        name=name,
        title=tool.title or tool.name,
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        scope=ToolScope.MCP,
        effects=frozenset({Effect.READ}) if reads else _ANYTHING,
        validate=_as_given,  # its own server checks them
        invoke=invoke,
        destructive=not reads and said.destructive_hint is not False,
        idempotent=bool(said.idempotent_hint),
        tags=(server,),
        source=f"upstream:{server}",
        timeout=settings.timeout,
        bare=tool.name,
        listed=tool.model_copy(update={"name": name}),
        barred=barred,
    )


def _as_given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return dict(arguments)
