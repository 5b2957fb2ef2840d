"""Finds where a JSON Schema, possibly an untrusted one, allows secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tools.conversion.schema_reading import NAMED_SCHEMAS, Schema, referred

DATA = frozenset({"const", "default", "enum", "examples"})  # keywords whose values are not schemas
REFERENCES = frozenset({"$dynamicRef", "$ref"})
SAME_PLACE = REFERENCES | {
    *("allOf", "anyOf", "contentSchema", "dependentSchemas", "else", "if", "not", "oneOf", "then")
}
"""Keywords whose schemas apply to the same value as their parent."""


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
