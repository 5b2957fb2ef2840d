"""JSON Schema as a reader of it has to follow it: references, unions and what is inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]

NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def resolved(schema: Json, root: Json) -> Json:
    """The schema with what it refers to merged in, as JSON Schema 2020-12 reads a reference."""
    while "$ref" in schema:
        target: Json = root
        for step in schema["$ref"].removeprefix("#").strip("/").split("/"):
            target = target[step] if step else target
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    if len(schema.get("allOf", ())) == 1:
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        return {**resolved(schema["allOf"][0], root), **rest}
    return schema


def branches(schema: Json, root: Json) -> Iterator[Json]:
    """The alternatives of a union, resolved and flat; a plain schema is its own only one."""
    schema = resolved(schema, root)
    union = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if not union:
        yield schema
    for part in union:
        yield from branches(part, root)


def json_types(schema: Mapping[str, Any]) -> list[str]:
    """The JSON types that a schema names, or those of the values that it lists."""
    named = schema.get("type", [NAMES[type(value)] for value in values_of(schema)])
    return [named] if isinstance(named, str) else list(named)


def values_of(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a schema lists."""
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))
