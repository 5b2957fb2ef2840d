"""Annotations as JSON schemas."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["or_null", "schema_of"]

NUMBERS: Mapping[str, dict[str, Any]] = {
    "PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "NonNegativeInt": {"type": "integer", "minimum": 0},
    "PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "NonNegativeFloat": {"type": "number", "minimum": 0},
    "ClosedUnitInterval": {"type": "number", "minimum": 0, "maximum": 1},
}
NAMES: Mapping[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "dict": {"type": "object"},
    "Dict": {"type": "object"},
    "list": {"type": "array"},
    "List": {"type": "array"},
    "Sequence": {"type": "array"},
    "tuple": {"type": "array"},
    "None": {"type": "null"},
    **NUMBERS,
}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that takes null as well."""
    null = {"type": "null"}
    if null in schema.get("anyOf", ()) or schema == null:
        return schema
    return {"anyOf": [*schema.get("anyOf", [schema]), null]}


def schema_of(node: ast.expr | None) -> dict[str, Any]:
    """The JSON schema of an annotation; of one that JSON does not know, the one that takes all."""
    match node:
        case ast.Constant(value=None):
            return NAMES["None"]
        case ast.Name(id=name):
            return NAMES.get(name, {})
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([left, right])
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return _subscripted(name, inner.elts if isinstance(inner, ast.Tuple) else [inner])
    return {}


def _subscripted(name: str, inner: Sequence[ast.expr]) -> dict[str, Any]:  # noqa: PLR0911  # a form each
    match name:
        case "Optional":
            found = schema_of(inner[0])
            return or_null(found) if found else {}
        case "Union":
            return _any_of(inner)
        case "Literal":
            return {"enum": [ast.literal_eval(each) for each in inner]}
        case "Annotated":
            return {**schema_of(inner[0]), **_bounds(inner[1])}
        case "List" | "list" | "Sequence":
            items = schema_of(inner[0])
            return {"type": "array", **({"items": items} if items else {})}
        case "Tuple" | "tuple":
            items = _any_of([each for each in inner if ast.unparse(each) != "..."])
            sizes = (
                {}
                if len(inner) > 1 and ast.unparse(inner[-1]) == "..."
                else {"minItems": len(inner), "maxItems": len(inner)}
            )
            return {"type": "array", **({"items": items} if items else {}), **sizes}
        case "Dict" | "dict":
            values = schema_of(inner[-1])
            return {"type": "object", **({"additionalProperties": values} if values else {})}
    return {}


def _any_of(inner: Iterable[ast.expr]) -> dict[str, Any]:
    found = [schema_of(each) for each in inner]
    if not all(found):
        return {}
    flat = [each for schema in found for each in schema.get("anyOf", [schema])]
    distinct = [each for place, each in enumerate(flat) if each not in flat[:place]]
    return {"anyOf": distinct} if len(distinct) > 1 else distinct[0]


def _bounds(node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Call):
        return {}
    return {
        BOUNDS[word.arg]: ast.literal_eval(word.value)
        for word in node.keywords
        if word.arg in BOUNDS
    }
