"""Definitions of tools in MCP: in full, and lean for short lists."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import mcp_types as types

from tools.conversion.schema_reading import merged, resolve
from tools.core.spec import ToolSpec

RARELY_GIVEN = frozenset(
    {
        *("agent_id", "confidence", "device_id", "encoding", "expected_sha256"),
        *("include_summaries", "intent", "keywords", "layer", "match", "max_calls", "metadata"),
        *("min_score", "output_mode", "raw_id", "raw_type"),
        *("summary", "time_type", "timezone"),
    }
)
"""Parameters, and keys within them, that few calls use."""

LENGTHS = frozenset({"maxItems", "maxLength", "minLength"})
"""Bounds that calls rarely exceed; the error names them."""

ALWAYS_LOADED = frozenset({"call_tool", "query", "remember", "run_code", "search_tools"})
"""The tools that a model needs in every session: they answer from memory and reach the others."""

ALWAYS_LOAD = "anthropic/alwaysLoad"
SEARCH_HINT = "anthropic/searchHint"
MOST_RESULT = "anthropic/maxResultSizeChars"

RESULT_CHARACTERS = 100_000  # of a result that Claude Code gives its model: 25,000 tokens
MOST_CHARACTERS = 500_000  # that a definition can raise this to


def describe(spec: ToolSpec) -> types.Tool:
    """Converts a tool to its MCP definition."""
    if isinstance(spec.listed, types.Tool):
        return spec.listed
    return types.Tool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        input_schema=dict(spec.input_schema),
        output_schema=None if spec.output_schema is None else dict(spec.output_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent or spec.read_only,
            open_world_hint=spec.open_world,
        ),
    )


def lean(tool: types.Tool) -> types.Tool:
    """Shortens a definition for lists; `describe_tool` returns it in full.

    It omits details without contradicting them: without rare parameters the input schema is open,
    and it has no lengths and no texts within parameters. The result is any object.
    """
    in_words = tool.name.replace("_", " ").capitalize()
    return tool.model_copy(
        update={
            "title": None if tool.title == in_words else tool.title,
            "input_schema": _input(tool.input_schema),
            "output_schema": None if tool.output_schema is None else {"type": "object"},
        }
    )


def hints(spec: ToolSpec, most: int | None) -> dict[str, Any]:
    """Returns the `_meta` by which Claude Code treats a tool.

    That is whether to load it, or what its search compares, and the size of its results if `most`
    characters (0 for any number) are more than it takes by itself. Tools of other servers are
    loaded as their server asks.
    """
    told: dict[str, Any] = {}
    if spec.source == "builtin" and spec.name in ALWAYS_LOADED:
        told[ALWAYS_LOAD] = True
    elif spec.capabilities and not spec.server:
        told[SEARCH_HINT] = "; ".join(spec.capabilities)
    if most is not None and not 0 < most <= RESULT_CHARACTERS:
        told[MOST_RESULT] = min(most or MOST_CHARACTERS, MOST_CHARACTERS)
    return told


def _input(schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    named = {
        name: _parameter(each, schema)
        for name, each in properties.items()
        if name in required or name not in RARELY_GIVEN
    }
    slim: dict[str, Any] = {"type": "object", "properties": named}
    if required:
        slim["required"] = required
    if len(named) == len(properties):
        slim["additionalProperties"] = False
    if "$ref" in str(named):  # within a parameter
        slim["$defs"] = schema["$defs"]
    return slim


def _parameter(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """Resolves a parameter's reference and joins both descriptions."""
    meant = resolve(schema, whole)
    texts = dict.fromkeys(filter(None, (schema.get("description"), meant.get("description"))))
    return {**_short(merged(schema, whole)), "description": ". ".join(texts)}


def _short(schema: Any) -> Any:  # noqa: ANN401  # any part of a schema
    """Removes lengths, and descriptions within a parameter."""
    if isinstance(schema, list):
        return [_short(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {*LENGTHS, "additionalProperties", "description"}
    if "minItems" in schema:
        left_out.discard("maxItems")
    rarely = RARELY_GIVEN.difference(schema.get("required", ()))
    return {key: _part(key, value, rarely) for key, value in schema.items() if key not in left_out}


def _part(key: str, value: Any, rarely: AbstractSet[str]) -> Any:  # noqa: ANN401  # the same
    if key in {"default", "enum"}:
        return value
    if key == "properties":
        return {name: _short(each) for name, each in value.items() if name not in rarely}
    return _short(value)
