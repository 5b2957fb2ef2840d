"""Lists the JSON Schema keywords that contain other schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

CONDITIONS = {"if", "not"}
"""Keywords under which a stricter schema makes the whole accept more."""
ONE_SCHEMA = {
    *("additionalProperties", "contains", "else", "items", "propertyNames", "then"),
    *CONDITIONS,
}
MANY_SCHEMAS = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMED_SCHEMAS = {"$defs", "definitions", "patternProperties", "properties"}
UNIONS = ("anyOf", "oneOf")


def changed(key: str, value: Any, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """Returns a keyword's value with the schemas in it changed."""
    if key in ONE_SCHEMA and isinstance(value, Mapping):
        return change(value)
    if key in MANY_SCHEMAS and isinstance(value, list):
        return [_part(part, change) for part in value]
    if key in NAMED_SCHEMAS and isinstance(value, Mapping):
        return {name: _part(part, change) for name, part in value.items()}
    return value


def _part(part: Any, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    return change(part) if isinstance(part, Mapping) else part  # true and false are schemas too
