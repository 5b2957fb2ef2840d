"""Removes null from unions and enums, which some clients reject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tools.conversion.schemas.keywords import CONDITIONS, UNIONS, changed

ANNOTATIONS = {"default", "deprecated", "description", "examples", "title"}
"""Keywords that the outer schema overrides if a union's type has them too."""


def without_null_unions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Removes null from every union of types or values, at any depth.

    This is for clients that reject such unions, and applies to tools of any server. Required
    properties stay required, and a type that is only null stays.
    """
    kept = {
        key: value if key in CONDITIONS else changed(key, value, without_null_unions)
        for key, value in schema.items()
    }
    return without_null(kept)


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Removes null from the schema's top-level unions of types and values."""
    narrowed = {**schema}
    for key, is_null in NULLS.items():
        parts = schema.get(key)
        if isinstance(parts, list) and (kept := [part for part in parts if not is_null(part)]):
            narrowed[key] = kept
    if narrowed == schema:
        return schema
    if narrowed.get("default", ...) is None:
        del narrowed["default"]
    match narrowed.get("type"):
        case [only]:
            narrowed["type"] = only
    values = narrowed.get("enum")
    if values and all(isinstance(value, str) for value in values):
        narrowed["type"] = "string"  # pydantic omits it if null is a value
    return _without_union_of_one(narrowed)


def _without_union_of_one(schema: dict[str, Any]) -> dict[str, Any]:
    for key in UNIONS:
        rest = {name: value for name, value in schema.items() if name != key}
        match schema.get(key):
            case [Mapping() as only] if rest.keys() & only.keys() <= ANNOTATIONS:
                return {**only, **rest}
    return schema


def _is_null(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    return schema.get("type") in ("null", ["null"]) or schema.get("const", ...) is None


NULLS: Mapping[str, Callable[[object], bool]] = {
    "enum": lambda value: value is None,
    "type": lambda kind: kind == "null",
    "anyOf": _is_null,
    "oneOf": _is_null,
}
"""The keywords under which null can be an alternative, with a test for it."""
