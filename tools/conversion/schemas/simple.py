"""Generates the JSON Schema of common types without pydantic's generator.

Pydantic takes a tenth of a millisecond for each type, and most types are text, numbers, or lists of
these. Anything else is left to the generator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
SCALARS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "bool": ("boolean", {}),
    "float": ("number", NUMBERS),
    "int": ("integer", NUMBERS),
    "str": (
        "string",
        {"max_length": "maxLength", "min_length": "minLength", "pattern": "pattern"},
    ),
}
"""The JSON type of each pydantic-core type, and the keywords for its constraints."""
LENGTHS = {"max_length": "maxItems", "min_length": "minItems"}
UPDATES = "pydantic_js_updates"


class _Unsaid(Exception):  # noqa: N818  # not an error: the generator handles it
    """A type that is not a common one."""


def arguments_schema(
    adapter: TypeAdapter[Any], generator: type[GenerateJsonSchema]
) -> dict[str, Any]:
    """Returns the JSON Schema of a typed dict, identical to the generator's."""
    core: Any = adapter.core_schema
    fields = core.get("schema", core)["fields"]
    said: dict[str, Any] = {}
    rest = {}
    for name, field in fields.items():
        try:
            said[name] = _schema_of(field["schema"])
        except _Unsaid:
            rest[name] = field
    generated = _generated(core, rest, generator)
    properties = {
        name: said[name] if name in said else generated["properties"][name] for name in fields
    }
    required = [name for name, field in fields.items() if field["required"]]
    return {**generated, "properties": properties, "required": required}


def simple_schema(core: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the JSON Schema of a core schema, or None if it is not a common type."""
    try:
        return _schema_of(core)
    except _Unsaid:
        return None


def _generated(
    core: Any,
    fields: Mapping[str, Any],
    generator: type[GenerateJsonSchema],
) -> dict[str, Any]:
    holder = core.get("schema", core)
    if not fields and "extras_schema" not in holder:
        return {"additionalProperties": False}
    reduced = {**holder, "fields": fields}
    if holder is not core:
        reduced = {**core, "schema": reduced}
    return generator().generate(reduced)


def _schema_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of one type.

    Raises:
        _Unsaid: If any part of it is not a common type.
    """
    kind = schema["type"]
    rest = {key: value for key, value in schema.items() if key not in {"type", "metadata"}}
    updates = schema.get("metadata", {})
    if updates.keys() - {UPDATES}:
        raise _Unsaid
    return {**_schema_of_kind(kind, rest), **updates.get(UPDATES, {})}


def _schema_of_kind(kind: str, rest: dict[str, Any]) -> dict[str, Any]:
    if kind in SCALARS:
        name, words = SCALARS[kind]
        return {"type": name, **_constraints(rest, words)}
    if kind == "any" and not rest:
        return {}
    if kind == "nullable":
        inner = _schema_of(rest.pop("schema"))
        said: dict[str, Any] = {"anyOf": [inner, {"type": "null"}]}
    elif kind == "default" and "default" in rest:
        inner, default = _schema_of(rest.pop("schema")), rest.pop("default")
        said = {**inner, "default": _scalar(default)}
    elif kind == "list":
        items = _schema_of(rest.pop("items_schema", {"type": "any"}))
        said = {"type": "array", "items": items, **_constraints(rest, LENGTHS)}
        rest = {}
    elif kind == "dict" and rest.pop("keys_schema", None) == {"type": "str"}:
        values = _schema_of(rest.pop("values_schema", {"type": "any"}))
        said = {"type": "object", "additionalProperties": values or True}
    elif kind == "literal" and all(type(each) is str for each in rest["expected"]):
        said = {"enum": rest.pop("expected"), "type": "string"}
    else:
        raise _Unsaid
    if rest:
        raise _Unsaid
    return said


def _constraints(given: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    constraints = {}
    for word, bound in given.items():
        if word not in words or not isinstance(bound, int | str):
            raise _Unsaid
        constraints[words[word]] = bound
    return constraints


def _scalar(value: object) -> object:
    if type(value) in {bool, int, str, type(None)}:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    raise _Unsaid
