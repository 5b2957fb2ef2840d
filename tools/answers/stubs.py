"""Stubs: tools as lines of Python, which say how a program calls them and what it gets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from typing import Any

from tools.answers.tool_cards import clipped_line, resolved, summary
from tools.core.spec import ToolSpec
from tools.functions.programs.from_runs import TYPES
from tools.functions.programs.namespace import ALONE

__all__ = ["stub"]

MOST_DEPTH = 5
"""Levels of a type that are told."""

LONGEST = 1_500
"""Characters of a line; of a longer one fewer levels are told."""

SUMMARY_CHARACTERS = 160

_PLAIN = {**TYPES, "null": "None"}


def stub(spec: ToolSpec, description: str) -> str:
    """A tool as one line of Python: its signature, the shape of its result, and what it does."""
    lines = (_line(spec, depth) for depth in range(MOST_DEPTH, -1, -1))
    line = next((each for each in lines if len(each) <= LONGEST), f"async def {spec.name}(**_)")
    return f"{line}  # {clipped_line(summary(description), SUMMARY_CHARACTERS)}"


def _line(spec: ToolSpec, depth: int) -> str:
    schema = spec.input_schema
    given = _members(schema)
    required = schema.get("required") or ()
    named = [each for each in given if _keyword(each).isidentifier()]
    ordered = sorted(named, key=lambda each: each not in required)
    parts = [_parameter(each, given[each], schema, depth, each in required) for each in ordered]
    if others := [each for each in given if each not in named]:
        shown = {each: given[each] for each in others}
        parts.append(f"**others: {_shape(shown, others, schema, depth)}")
    listed = ", ".join(["*", *parts] if ordered else parts)
    return f"async def {spec.name}({listed}) -> {_result(spec.output_schema, depth)}"


def _parameter(
    name: str, schema: object, root: Mapping[str, Any], depth: int, is_required: bool
) -> str:
    typed = f"{_keyword(name)}: {_type(schema, root, depth)}"
    if is_required:
        return typed
    if isinstance(schema, Mapping) and "default" in schema:
        return f"{typed} = {_literal(schema['default'])}"
    return f"{typed} = ..."


def _keyword(name: str) -> str:
    """A name as a program writes it: what Python keeps for itself has an underscore behind it."""
    return f"{name}_" if iskeyword(name) else name


def _result(schema: Mapping[str, Any] | None, depth: int) -> str:
    if schema is None:
        return "str"
    members = _members(schema)
    whole = members[ALONE] if members.keys() == {ALONE} else schema
    return _type(whole, schema, depth)


def _type(schema: object, root: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, Mapping):
        return "Any"
    schema = resolved(schema, root)
    if isinstance(choices := schema.get("enum"), list | tuple):
        return f"Literal[{', '.join(map(_literal, choices))}]"
    if "const" in schema:
        return f"Literal[{_literal(schema['const'])}]"
    union = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(union, list | tuple):
        return _union(_type(each, root, depth) for each in union)
    kind = schema.get("type", "object" if "properties" in schema else None)
    kinds = kind if isinstance(kind, list | tuple) else [kind]
    return _union(_kind(str(each), schema, root, depth) for each in kinds)


def _kind(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    plain = _PLAIN.get(kind, "Any")
    if not depth:
        return plain
    if plain == "list" and "items" in schema:
        return f"list[{_type(schema['items'], root, depth - 1)}]"
    if plain != "dict":
        return plain
    if members := _members(schema):
        return _shape(members, schema.get("required") or (), root, depth)
    more = schema.get("additionalProperties")
    return f"dict[str, {_type(more, root, depth - 1)}]" if isinstance(more, Mapping) else "dict"


def _shape(
    members: Mapping[str, object], required: object, root: Mapping[str, Any], depth: int
) -> str:
    needed = required if isinstance(required, list | tuple) else ()
    told = (
        f"{_literal(name)}: {_type(each, root, depth - 1)}"
        if name in needed
        else f"{_literal(name)}: NotRequired[{_type(each, root, depth - 1)}]"
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
