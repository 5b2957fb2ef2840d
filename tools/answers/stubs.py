"""Stubs: describes tools as lines of Python, for programs that call them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from keyword import iskeyword
from typing import Any

from tools.answers.tool_cards import clipped_line
from tools.conversion.schema_reading import merged
from tools.core.spec import ToolSpec
from tools.functions.programs.namespace import ALONE
from tools.functions.programs.source_analysis import TYPES
from tools.retrieval.models import first_sentence

MOST_DEPTH = 5  # limit on the levels of a type
LONGEST = 1_500  # limit on the characters of a line; a longer one shows fewer levels
SUMMARY_CHARACTERS = 160

_PLAIN = {**TYPES, "null": "None"}


def stub(spec: ToolSpec, description: str) -> str:
    """Returns a tool as one line of Python: its signature, result type and description."""
    lines = (_line(spec, depth) for depth in range(MOST_DEPTH + 1))
    short = [*takewhile(lambda line: len(line) <= LONGEST, lines)]
    line = short[-1] if short else f"async def {spec.name}(**_)"
    return f"{line}  # {clipped_line(first_sentence(description), SUMMARY_CHARACTERS)}"


def _line(spec: ToolSpec, depth: int) -> str:
    schema = spec.input_schema
    types = _Types(schema)
    given = _members(schema)
    required = schema.get("required") or ()
    named = [each for each in given if _keyword(each).isidentifier()]
    ordered = sorted(named, key=lambda each: each not in required)
    parts = [_parameter(each, given[each], types, depth, each in required) for each in ordered]
    if others := [each for each in given if each not in named]:
        shown = {each: given[each] for each in others}
        parts.append(f"**others: {types.shape(shown, others, depth)}")
    listed = ", ".join(["*", *parts] if ordered else parts)
    return f"async def {spec.name}({listed}) -> {_result(spec.output_schema, depth)}"


def _parameter(name: str, schema: object, types: _Types, depth: int, is_required: bool) -> str:
    typed = f"{_keyword(name)}: {types.of(schema, depth)}"
    if is_required:
        return typed
    if isinstance(schema, Mapping) and "default" in schema:
        return f"{typed} = {_literal(schema['default'])}"
    return f"{typed} = ..."


def _keyword(name: str) -> str:
    return f"{name}_" if iskeyword(name) else name


def _result(schema: Mapping[str, Any] | None, depth: int) -> str:
    if schema is None:
        return "str"
    members = _members(schema)
    whole = members[ALONE] if members.keys() == {ALONE} else schema
    return _Types(schema).of(whole, depth)


class _Types:
    """The types of an untrusted schema: each part is written once, and cut."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._written: dict[tuple[int, int], str] = {}

    def of(self, schema: object, depth: int) -> str:
        """Returns the type of a part, down to a number of levels."""
        if not isinstance(schema, Mapping):
            return "Any"
        key = id(schema), depth
        if key not in self._written:
            self._written[key] = "Any"  # for recursive types
            self._written[key] = self._type(schema, depth)[: LONGEST + 1]
        return self._written[key]

    def _type(self, schema: Mapping[str, Any], depth: int) -> str:
        schema = merged(schema, self._root)
        if isinstance(choices := schema.get("enum"), list | tuple):
            return f"Literal[{', '.join(map(_literal, choices))}]"
        if "const" in schema:
            return f"Literal[{_literal(schema['const'])}]"
        union = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(union, list | tuple):
            return _union(self.of(each, depth) for each in union)
        kind = schema.get("type", "object" if "properties" in schema else None)
        kinds = kind if isinstance(kind, list | tuple) else [kind]
        return _union(self._kind(str(each), schema, depth) for each in kinds)

    def _kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> str:
        plain = _PLAIN.get(kind, "Any")
        if not depth:
            return plain
        if plain == "list" and "items" in schema:
            return f"list[{self.of(schema['items'], depth - 1)}]"
        if plain != "dict":
            return plain
        if members := _members(schema):
            return self.shape(members, schema.get("required") or (), depth)
        more = schema.get("additionalProperties")
        return f"dict[str, {self.of(more, depth - 1)}]" if isinstance(more, Mapping) else "dict"

    def shape(self, members: Mapping[str, object], required: object, depth: int) -> str:
        """Returns the type of an object with these members, down to a number of levels."""
        needed = required if isinstance(required, list | tuple) else ()
        told = (
            f"{_literal(name)}: {self.of(each, depth - 1)}"
            if name in needed
            else f"{_literal(name)}: NotRequired[{self.of(each, depth - 1)}]"
            for name, each in members.items()
        )
        return f"{{{', '.join(told)}}}"


def _members(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _union(kinds: Iterator[str]) -> str:
    return " | ".join(dict.fromkeys(kinds)) or "Any"


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
