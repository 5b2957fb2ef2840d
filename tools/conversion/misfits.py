"""Misfits: where arguments do not fit a JSON Schema of another server, in words for a model.

Other servers check their arguments themselves, and some take more than their schemas say: this
explains a refusal, and never refuses. It looks at the names and the types of the arguments alone:
patterns of others could take for ever, and references lead anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tools.conversion.arguments.complaints import nearest, unknown
from tools.conversion.arguments.wording import show

__all__ = ["misfits"]

MOST = 5
"""Lines at most."""

TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list, tuple),
    "boolean": (bool,),
    "integer": (int, float),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def misfits(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """What is wrong, a line each: what is missing, unknown, or of another type.

    Args:
        schema: JSON Schema of the arguments.
        arguments: As they were sent.
    """
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    lines = [*_missing(schema, arguments), *_unknown(schema, known, arguments)]
    lines += _of_other_types(known, arguments)
    return lines[:MOST]


def _missing(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required")
    for name in required if isinstance(required, list | tuple) else ():
        if isinstance(name, str) and name not in arguments:
            yield f"`{name}` is missing."


def _unknown(
    schema: Mapping[str, Any], known: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Iterator[str]:
    names = [name for name in known if isinstance(name, str)]
    closed = schema.get("additionalProperties") is False
    for name in arguments:
        if name not in known and (closed or nearest(name, names)):
            yield unknown("", name, names)


def _of_other_types(known: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[str]:
    for name, value in arguments.items():
        kinds = _kinds(known.get(name))
        if kinds and not any(_is(value, kind) for kind in kinds):
            yield f"`{name}` must be of type {' or '.join(kinds)}, not {show(value)}."


def _kinds(schema: object) -> list[str]:
    """The types that a value may have; none where the schema does not tell all of them."""
    said = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = said if isinstance(said, list | tuple) else [said]
    return [*kinds] if all(isinstance(kind, str) and kind in TYPES for kind in kinds) else []


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[kind])
