"""Coercion of values that are not what a schema says, and still can mean one thing only.

Models send a list as the JSON of it, null for what they leave out, and 5.0 for 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import ErrorDetails, from_json

from tools.conversion.schema import branches, child, types

__all__ = ["coerce", "false_numbers"]

STRUCTURES = {"array", "object"}
ENDLESS = {"inf", "infinity", "nan"}


def coerce(value: object, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Returns a value as its schema wants it, where it can mean nothing else; otherwise as it is.

    Args:
        value: Decoded JSON.
        schema: What it should be; nulls are still in it.
        root: The schema whose `$defs` it may refer to.
    """
    if isinstance(value, str):
        kinds = types(schema, root)
        if "string" in kinds or kinds.isdisjoint(STRUCTURES):
            return value
        decoded = _decoded(value)
        return value if decoded is None else coerce(decoded, schema, root)
    if isinstance(value, float):
        kinds = types(schema, root)
        whole = "integer" in kinds and "number" not in kinds and value.is_integer()
        return int(value) if whole else value
    if isinstance(value, list):
        return [
            item if (part := child(schema, place, root)) is None else coerce(item, part, root)
            for place, item in enumerate(value)
        ]
    if isinstance(value, dict):
        return dict(_coerced_items(value, schema, root))
    return value


def false_numbers(
    value: object, schema: Mapping[str, Any], root: Mapping[str, Any], *place: int | str
) -> Iterator[ErrorDetails]:
    """Yields errors for what pydantic takes for a number and JSON does not: true, "NaN", "inf"."""
    if isinstance(value, bool | str):
        kinds = types(schema, root)
        own = "string" if isinstance(value, str) else "boolean"
        if own in kinds or kinds.isdisjoint({"integer", "number"}):
            return
        if isinstance(value, bool):
            yield {"type": "bool_for_number", "loc": place, "msg": "", "input": value}
        elif value.strip("+- ").lower() in ENDLESS:
            told = "Input should be a finite number"
            yield {"type": "finite_number", "loc": place, "msg": told, "input": value}
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            inner = child(schema, key, root) if isinstance(part, bool | dict | list | str) else None
            if inner is not None:
                yield from false_numbers(part, inner, root, *place, key)


def _coerced_items(
    value: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    required = {name for branch in branches(schema, root) for name in branch.get("required", ())}
    for name, item in value.items():
        part = child(schema, name, root)
        if part is None:
            yield name, item
        elif item is not None:
            yield name, coerce(item, part, root)
        elif name in required or _takes_null(part, root):
            yield name, None


def _takes_null(schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    kinds = types(schema, root)
    return not kinds or "null" in kinds


def _decoded(text: str) -> object:
    """The list or object that a text is the JSON of, or None."""
    try:
        decoded = from_json(text)
    except (TypeError, ValueError):  # TypeError: half of a surrogate pair
        return None
    return decoded if isinstance(decoded, list | dict) else None
