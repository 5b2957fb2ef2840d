"""Converts a description's schemas to JSON Schema (2020-12) for requests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from storage.index.bounded import clip_line
from tools.conversion.schema_reading import ONE_SCHEMA
from tools.openapi.description import Description, UnusableError, pairs, text_of

DEEPEST = 64  # maximum nesting of schemas; deeper ones are left open
LONGEST_TEXT = 300  # maximum characters of a property's description
MOST_DEFINITIONS = 24_000
"""Maximum characters of the `$defs` of one tool; schemas beyond it are left open."""

MOST_PARTS = 300_000
"""Maximum schemas and references in all tools of a description; GitHub's has some 6,000."""

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_MANY = {"allOf": "allOf", "anyOf": "anyOf", "oneOf": "anyOf", "prefixItems": "prefixItems"}
"""`oneOf` becomes `anyOf`: in real APIs several alternatives may match, and the API decides."""

_NAMED = frozenset({"patternProperties", "properties"})
_COUNTS = frozenset(
    {"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"}
)
_NUMBERS = frozenset({"maximum", "minimum", "multipleOf"})
_TEXTS = frozenset({"contentEncoding", "contentMediaType", "format", "pattern"})
_FLAGS = frozenset({"uniqueItems", "writeOnly"})

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")


def clean_text(text: object, longest: int) -> str:
    """Returns a description's text without HTML tags and line ends, cut to a length."""
    return clip_line(_TAG.sub(" ", text_of(text)), longest)


class Schemas:
    """Converts the schemas of one description, each shared one only once.

    Properties that only occur in responses (`readOnly`) are left out.
    """

    def __init__(self, description: Description) -> None:
        self.description = description
        self._names: dict[str, str] = {}
        self._references: dict[str, str] = {}
        self._often: Counter[str] = Counter()
        self._made: dict[str, _Definition] = {}
        self._parts = 0

    def convert(self, schema: object, references: set[str]) -> dict[str, Any]:
        """Converts a schema of the description to one of a tool.

        `references` receives the names of the `$defs` that it needs.
        """
        return self._converted(schema, references, 0)

    def definitions(self, references: Iterable[str]) -> dict[str, Any]:
        """Returns the `$defs` of a schema, including those they need themselves.

        If they are too large, they lose their texts, and those farthest from the schema are left
        open.
        """
        needed: dict[str, _Definition] = {}
        waiting = list(references)
        while waiting:
            near = list(dict.fromkeys(name for name in waiting if name not in needed))
            self._count(len(near))
            needed |= {name: self._definition(name) for name in near}
            waiting = [each for name in near for each in needed[name].references]
        if sum(each.size for each in needed.values()) <= MOST_DEFINITIONS:
            return {name: each.schema for name, each in needed.items()}
        room = MOST_DEFINITIONS
        slim: dict[str, Any] = {}
        for name, each in needed.items():
            room -= each.slim_size
            slim[name] = each.slim if room > 0 else {}
        return slim

    def _definition(self, name: str) -> _Definition:
        if name not in self._made:
            references: set[str] = set()
            target = self.description.at(self._references[name])
            schema = self._converted(target, references, 0)
            self._made[name] = _Definition(schema, sorted(references))
        return self._made[name]

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > MOST_PARTS:
            raise UnusableError(f"the description has schemas of more than {MOST_PARTS:,} parts")

    def _definition_name(self, reference: str) -> str:
        target = pairs(self.description.at(reference))
        while isinstance(target.get("$ref"), str):
            self.description.follow(target)  # raises for a cycle
            reference = target["$ref"]
            target = pairs(self.description.at(reference))
        if reference not in self._names:
            stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", reference.rpartition("/")[2])[:64] or "schema"
            name = stem
            while name in self._references:
                self._often[stem] += 1
                name = f"{stem}-{self._often[stem] + 1}"
            self._names[reference], self._references[name] = name, reference
        return self._names[reference]

    def _converted(self, schema: object, references: set[str], depth: int) -> dict[str, Any]:
        if schema is False:
            return {"not": {}}
        given = pairs(schema)
        if depth > DEEPEST or not given:
            return {}
        self._count(1)
        made: dict[str, Any] = {}
        if isinstance(given.get("$ref"), str):
            name = self._definition_name(given["$ref"])
            references.add(name)
            made["$ref"] = f"#/$defs/{name}"

        def inner(each: object) -> dict[str, Any]:
            return self._converted(each, references, depth + 1)

        for key, value in given.items():
            made |= self._keyword(key, value, inner)
        left_out = pairs(given.get("properties")).keys() - made.get("properties", {}).keys()
        if required := [each for each in made.pop("required", ()) if each not in left_out]:
            made["required"] = required
        return self._with_null(_with_bounds(made, given), given)

    def _keyword(
        self,
        key: str,
        value: Any,  # noqa: ANN401  # any JSON value
        inner: Callable[[object], dict[str, Any]],
    ) -> dict[str, Any]:
        """Converts one keyword; returns {} for keywords that JSON Schema does not have."""
        if key in _NAMED and isinstance(value, Mapping):
            every = key == "patternProperties"
            sent = {name: each for name, each in value.items() if every or self._is_sent(each)}
            return {key: {name: inner(each) for name, each in sent.items()}}
        if key in ONE_SCHEMA:
            return {} if value is True else {key: False if value is False else inner(value)}
        if key in _MANY and isinstance(value, list) and value:
            return {_MANY[key]: [inner(each) for each in value]}
        if key == "description":
            text = clean_text(value, LONGEST_TEXT)
            return {key: text} if text else {}
        return {key: value} if _is_sound(key, value) else {}

    def _is_sent(self, schema: object) -> bool:
        given = pairs(schema)
        target = self.description.follow(schema) if "$ref" in given else given
        return not (given.get("readOnly") is True or target.get("readOnly") is True)

    def _with_null(self, made: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        if not (self.description.is_3_0 and given.get("nullable") is True):
            return made
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        if isinstance(made.get("type"), str):
            return {**made, "type": [made["type"], "null"]}
        return {"anyOf": [made, {"type": "null"}]} if made.keys() - {"description"} else made


@dataclass(frozen=True)
class _Definition:
    schema: dict[str, Any]
    references: Sequence[str]  # the names of the schemas that it refers to

    @cached_property
    def size(self) -> int:
        """Its size in characters."""
        return _size(self.schema)

    @cached_property
    def slim(self) -> dict[str, Any]:
        """The schema without texts."""
        slim: dict[str, Any] = _without_texts(self.schema)
        return slim

    @cached_property
    def slim_size(self) -> int:
        """The size of `slim` in characters."""
        return _size(self.slim)


def _with_bounds(made: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Converts exclusive bounds to numbers; in 3.0 they are flags."""
    for bound, key in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        value = given.get(key)
        if value is True and bound in made:
            made[key] = made.pop(bound)
        elif _is_number(value):
            made[key] = value
    return made


def _is_sound(key: str, value: object) -> bool:
    if key == "type":
        kinds = value if isinstance(value, list) and value else [value]
        return all(isinstance(each, str) and each in _TYPES for each in kinds)
    if key == "required":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if key == "enum":
        return isinstance(value, list) and bool(value)
    if key in _COUNTS:
        return _is_number(value) and isinstance(value, int) and value >= 0
    return (
        key in {"const", "default"}
        or (key in _NUMBERS and _is_number(value))
        or (key in _TEXTS and isinstance(value, str))
        or (key in _FLAGS and value is True)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_texts(schema: Any) -> Any:  # noqa: ANN401  # any part of a schema
    if isinstance(schema, list):
        return [_without_texts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_texts(each)
        for key, each in schema.items()
        if key != "description" or not isinstance(each, str)
    }


def _size(schema: object) -> int:
    return len(json.dumps(schema, separators=(",", ":")))
