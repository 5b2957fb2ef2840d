"""Reads schemas: references, unions, parts and types, where they allow null and secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

CONDITIONS = {"if", "not"}
"""Keywords under which a stricter schema makes the whole accept more."""
ONE_SCHEMA = {
    *("additionalProperties", "contains", "else", "items", "propertyNames", "then"),
    *CONDITIONS,
}
MANY_SCHEMAS = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMED_SCHEMAS = {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
UNIONS = ("anyOf", "oneOf")
LONGEST_CHAIN = 16
"""Maximum references followed from one to the next; those of other servers may form a circle."""


ANNOTATIONS = {"default", "deprecated", "description", "examples", "title"}
"""Keywords that the outer schema overrides if a union's type has them too."""

DATA = frozenset({"const", "default", "enum", "examples"})  # keywords whose values are not schemas
REFERENCES = frozenset({"$dynamicRef", "$ref"})
SAME_PLACE = REFERENCES | {
    *("allOf", "anyOf", "contentSchema", "dependentSchemas", "else", "if", "not", "oneOf", "then")
}
"""Keywords whose schemas apply to the same value as their parent."""


def changed(key: str, value: Any, change: Callable[[Schema], dict[str, Any]]) -> Any:
    """Returns a keyword's value with the schemas in it changed."""
    if key in ONE_SCHEMA and isinstance(value, Mapping):
        return change(value)
    if key in MANY_SCHEMAS and isinstance(value, list):
        return [_part(part, change) for part in value]
    if key in NAMED_SCHEMAS and isinstance(value, Mapping):
        return {name: _part(part, change) for name, part in value.items()}
    return value


def _part(part: Any, change: Callable[[Schema], dict[str, Any]]) -> Any:
    return change(part) if isinstance(part, Mapping) else part  # true and false are schemas too


def resolve(schema: Schema, root: Schema) -> Schema:
    """Returns the schema itself, or the one in the root's `$defs` to which it refers."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def referred(reference: str, root: Schema) -> object:
    """Returns what a JSON Pointer such as "#/$defs/A" leads to (RFC 6901); None if nowhere."""
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def merged(schema: Schema, root: Schema) -> dict[str, Any]:
    """Returns a schema merged into the one to which it refers, even if it is another server's.

    A reference that leads nowhere stays.
    """
    found = dict(schema)
    for _ in range(LONGEST_CHAIN):
        place: Any = found.get("$ref")
        is_inside = isinstance(place, str) and place.startswith("#")
        target = referred(place, root) if is_inside else None
        if not isinstance(target, Mapping):
            break
        del found["$ref"]
        found = {**target, **found}
    return found


def branches(schema: Schema, root: Schema) -> Iterator[Schema]:
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


def union(schema: Schema) -> Sequence[Schema]:
    """Returns the unresolved alternatives of a union, or none for other schemas."""
    return next((schema[key] for key in UNIONS if key in schema), ())


def child(schema: Schema, key: str | int, root: Schema) -> Schema | None:
    """Returns the schema of a property or item, or None if no branch has it."""
    for branch in branches(schema, root):
        inside = branch.get("contentSchema", branch)
        if isinstance(key, int):
            fixed = inside.get("prefixItems", ())
            found = fixed[key] if key < len(fixed) else inside.get("items")
        else:
            properties = inside.get("properties", {})
            found = properties.get(key, inside.get("additionalProperties"))
        if isinstance(found, Mapping):
            return found
    return None


def types(schema: Schema, root: Schema) -> set[str]:
    """Returns the JSON types at a schema's top, or none if any branch leaves its type open."""
    named: set[str] = set()
    for branch in branches(schema, root):
        if "type" not in branch:
            return set()
        kinds = branch["type"]
        named |= {kinds} if isinstance(kinds, str) else set(kinds)
    return named


def without_null_unions(schema: Schema) -> dict[str, Any]:
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


def is_secret(schema: Schema) -> bool:
    """Returns whether a schema itself marks its values as secret."""
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def bears_secret(schema: Schema, root: Schema) -> bool:
    """Returns whether a value of the schema may contain a secret at any depth."""
    return any(map(is_secret, subschemas(schema, root)))


def of_same_place(schemas: Sequence[Schema], root: Schema) -> Iterator[Schema]:
    """Yields the schemas and all others that apply to the same value."""
    return _reached(schemas, root, lambda key: key in SAME_PLACE)


def subschemas(schema: Schema, root: Schema) -> Iterator[Schema]:
    """Yields the schema and all others that apply to its value or anything inside it."""
    return _reached([schema], root, lambda key: key not in DATA)


def _reached(
    schemas: Sequence[Schema], root: Schema, follows: Callable[[str], bool]
) -> Iterator[Schema]:
    waiting: list[Any] = list(schemas)
    seen: set[int] = set()
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, list | tuple):
            waiting += schema
        elif isinstance(schema, Mapping) and id(schema) not in seen:
            seen.add(id(schema))
            yield schema
            for key, value in schema.items():
                if not follows(key):
                    continue
                if key in REFERENCES and isinstance(value, str):
                    waiting.append(referred(value, root))
                elif key in NAMED_SCHEMAS and isinstance(value, Mapping):
                    waiting += value.values()
                else:
                    waiting.append(value)


def of_property(schemas: Sequence[Schema], name: str) -> list[Schema]:
    """Returns the schemas that apply to one property; none if no schema knows it."""
    found: list[Any] = []
    for each in schemas:
        properties, patterns = each.get("properties"), each.get("patternProperties")
        found += patterns.values() if isinstance(patterns, Mapping) else ()
        if isinstance(properties, Mapping) and name in properties:
            found.append(properties[name])
        else:
            found += [each.get("additionalProperties"), each.get("unevaluatedProperties")]
    return [each for each in found if isinstance(each, Mapping)]


def of_name(schemas: Sequence[Schema]) -> list[Schema]:
    """Returns the schemas that apply to the names of properties."""
    found = [each.get("propertyNames") for each in schemas]
    return [each for each in found if isinstance(each, Mapping)]


def of_item(schemas: Sequence[Schema], place: int) -> list[Schema]:
    """Returns the schemas that apply to one item; none if no schema knows it."""
    found: list[Any] = []
    for each in schemas:
        first = each.get("prefixItems")
        found += first[place : place + 1] if isinstance(first, list) else ()
        found += [each.get("items"), each.get("contains"), each.get("unevaluatedItems")]
    return [each for each in found if isinstance(each, Mapping)]
