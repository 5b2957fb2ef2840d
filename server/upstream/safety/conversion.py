"""The tools of other servers as tools of ours."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types

from server.settings.gateway import ServerSettings
from server.upstream.safety.schemas import rooted, sound
from tools.conversion.naming import SEPARATOR, exposed_name
from tools.core.context import RequestContext
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec

Invoke = Callable[[dict[str, Any], RequestContext], Awaitable[ToolResult]]

_ANYTHING = frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.EXTERNAL})


def readable(tool: types.Tool) -> types.Tool:
    """The tool with schemas that every client can read; all else is as its server lists it.

    A schema of results that are no objects is left out: clients before protocol 2026-07-28 would
    refuse the whole list.
    """
    results = tool.output_schema
    schemas = {
        "input_schema": rooted(tool.input_schema),
        "output_schema": rooted(results) if results and results.get("type") == "object" else None,
    }
    return tool.model_copy(update=schemas)


def to_spec(server: str, tool: types.Tool, settings: ServerSettings, invoke: Invoke) -> ToolSpec:
    """A tool of another server as one of ours.

    Args:
        server: Name of the server in the settings.
        tool: Its definition, as `readable` returned it.
        settings: Those of the server; only of a trusted one the annotations are believed.
        invoke: Calls it.
    """
    name = exposed_name(server, tool.name)
    title = tool.title or (tool.annotations and tool.annotations.title) or ""
    said = (tool.annotations if settings.trusted else None) or types.ToolAnnotations()
    reads = bool(said.read_only_hint)
    return ToolSpec(
        name=name,
        title=title or tool.name,
        description=tool.description or "",
        input_schema=sound(tool.input_schema),
        output_schema=tool.output_schema,
        scope=ToolScope.MCP,
        effects=frozenset({Effect.READ}) if reads else _ANYTHING,
        validate=_as_given,  # its own server checks them
        invoke=invoke,
        destructive=not reads and said.destructive_hint is not False,
        idempotent=bool(said.idempotent_hint),
        tags=(server,),
        capabilities=(title,) if title else (),
        source=f"upstream:{server}",
        timeout=math.inf,  # a call keeps the time itself: it stands still while somebody is asked
        becomes_job=True,
        bare=tool.name,
        listed=tool.model_copy(update={"name": name}),
    )


def to_barred(spec: ToolSpec, reason: str) -> ToolSpec:
    """The same tool in quarantine: its names, and nothing else that its server says of it.

    What is not there reaches no model on any path. A bare name that had to be changed is left out
    with the rest: it may say more than a name does.

    Args:
        spec: The tool.
        reason: Why nobody may call it until a person has looked at it; in words of ours.
    """
    kept = spec.name == f"{spec.server}{SEPARATOR}{spec.bare}"
    return ToolSpec(
        name=spec.name,
        title=spec.name,
        description=f"In quarantine: {reason}.",
        input_schema={"type": "object"},
        output_schema=None,
        scope=ToolScope.MCP,
        effects=_ANYTHING,
        validate=_as_given,
        invoke=spec.invoke,
        destructive=True,
        tags=spec.tags,
        source=spec.source,
        bare=spec.bare if kept else "",
        barred=reason,
    )


def _as_given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return dict(arguments)
