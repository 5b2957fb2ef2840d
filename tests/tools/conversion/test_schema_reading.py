"""Reading of schemas whose definitions name each other, and removal of null."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest

from tools.conversion.schema_reading import branches, without_null_unions


def test_each_alternative_is_told_once_however_many_ways_lead_to_it() -> None:
    definitions: dict[str, Any] = {
        str(level): {"anyOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(60)
    }
    last = {"type": "integer"}
    root = {"$defs": {**definitions, "60": last}}
    assert list(branches({"$ref": "#/$defs/0"}, root)) == [last]


def test_a_union_that_contains_itself_ends() -> None:
    one, other = {"type": "string"}, {"type": "null"}
    root = {"$defs": {"text": {"anyOf": [one, {"$ref": "#/$defs/text"}, other]}}}
    assert list(branches({"$ref": "#/$defs/text"}, root)) == [one, other]


TEXT = {"type": "string"}
NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "without"),
    [
        ({"anyOf": [TEXT, NULL]}, TEXT),
        ({"oneOf": [NULL, TEXT], "description": "d"}, {**TEXT, "description": "d"}),
        ({"anyOf": [TEXT, NULL], "default": None}, TEXT),
        ({"anyOf": [TEXT, {"type": "integer"}, NULL]}, {"anyOf": [TEXT, {"type": "integer"}]}),
        ({"anyOf": [TEXT, {"type": ["integer", "null"]}, {"const": None}]}, None),
        ({"type": ["string", "null"], "maxLength": 5}, {**TEXT, "maxLength": 5}),
        ({"type": ["string", "integer", "null"]}, {"type": ["string", "integer"]}),
        ({"enum": ["null", None]}, {"enum": ["null"], "type": "string"}),
        ({"type": ["integer", "null"], "enum": [1, None]}, {"type": "integer", "enum": [1]}),
        (
            {"anyOf": [{"$ref": "#/$defs/a"}, NULL], "title": "t"},
            {"$ref": "#/$defs/a", "title": "t"},
        ),
        (
            {"anyOf": [{"maximum": 3}, NULL], "maximum": 5},
            {"anyOf": [{"maximum": 3}], "maximum": 5},
        ),
    ],
)
def test_null_goes_from_beside_other_types_and_values(
    schema: dict[str, Any], without: dict[str, Any] | None
) -> None:
    without = without or {"anyOf": [TEXT, {"type": "integer"}]}
    assert without_null_unions(schema) == without


@pytest.mark.parametrize(
    "schema",
    [
        NULL,
        {"type": ["null"]},
        {"const": None},
        {"enum": [None]},
        {"anyOf": [NULL]},
        {"not": {"type": ["string", "null"]}},
        {"items": True, "additionalProperties": False, "properties": {"a": True}},
        {"anyOf": "other servers", "type": 5, "properties": []},
    ],
)
def test_null_alone_and_what_only_looks_like_a_union_stay(schema: dict[str, Any]) -> None:
    assert without_null_unions(schema) == schema


def test_null_goes_at_any_depth_and_what_is_required_stays_required() -> None:
    nullable = {"anyOf": [TEXT, NULL]}
    schema = {
        "type": "object",
        "properties": {
            "due": nullable,
            "rows": {"type": "array", "items": nullable, "prefixItems": [nullable]},
            "map": {"type": "object", "additionalProperties": nullable},
            "type": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL]},
        },
        "required": ["due", "type"],
        "$defs": {"Node": {"type": "object", "properties": {"anyOf": nullable}}},
    }
    before = repr(schema)
    assert without_null_unions(schema) == {
        "type": "object",
        "properties": {
            "due": TEXT,
            "rows": {"type": "array", "items": TEXT, "prefixItems": [TEXT]},
            "map": {"type": "object", "additionalProperties": TEXT},
            "type": {"$ref": "#/$defs/Node"},
        },
        "required": ["due", "type"],
        "$defs": {"Node": {"type": "object", "properties": {"anyOf": TEXT}}},
    }
    assert repr(schema) == before
    jsonschema.Draft202012Validator.check_schema(without_null_unions(schema))
