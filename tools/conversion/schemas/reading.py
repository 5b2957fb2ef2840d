"""Reads references, unions, parts and types of schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tools.conversion.schemas.keywords import UNIONS


def resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the schema itself, or the one in the root's `$defs` to which it refers."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def branches(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the alternatives of a union, resolved and flattened; a plain schema yields itself.

    Each is yielded once, since definitions that refer to each other would never end.
    """
    waiting, seen = [schema], set[int]()
    while waiting:
        found = resolve(waiting.pop(), root)
        if id(found) in seen:
            continue
        seen.add(id(found))
        alternatives = union(found)
        waiting.extend(reversed(alternatives))
        if not alternatives:
            yield found


def union(schema: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the unresolved alternatives of a union, or none for other schemas."""
    return next((schema[key] for key in UNIONS if key in schema), ())


def child(
    schema: Mapping[str, Any], key: str | int, root: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Returns the schema of a property or item, or None if no branch has it."""
    for branch in branches(schema, root):
        inside = branch.get("contentSchema", branch)
        found = _item(inside, key) if isinstance(key, int) else _property(inside, key)
        if found is not None:
            return found
    return None


def types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> set[str]:
    """Returns the JSON types at a schema's top, or none if any branch leaves its type open."""
    named: set[str] = set()
    for branch in branches(schema, root):
        if "type" not in branch:
            return set()
        kinds = branch["type"]
        named |= {kinds} if isinstance(kinds, str) else set(kinds)
    return named


def _item(schema: Mapping[str, Any], index: int) -> Mapping[str, Any] | None:
    fixed = schema.get("prefixItems", ())
    found = fixed[index] if index < len(fixed) else schema.get("items")
    return found if isinstance(found, Mapping) else None


def _property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    if name in schema.get("properties", ()):
        found = schema["properties"][name]
    else:
        found = schema.get("additionalProperties")
    return found if isinstance(found, Mapping) else None
