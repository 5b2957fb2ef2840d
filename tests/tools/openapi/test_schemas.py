import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest

from tools.openapi.description import Description
from tools.openapi.schemas import MOST_DEFINITIONS, Schemas


def _converted(schema: Any, version: str = "3.0.3", **components: Any) -> dict[str, Any]:
    document = {"openapi": version, "components": {"schemas": components}}
    schemas = Schemas(Description.parse(json.dumps(document).encode()))
    references: set[str] = set()
    made = schemas.convert(schema, references)
    definitions = schemas.definitions(references)
    whole = {**made, "$defs": definitions} if definitions else made
    jsonschema.Draft202012Validator.check_schema(whole)
    return whole


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"oneOf": [{"type": "integer"}]}, {"anyOf": [{"type": "integer"}]}),
        ({"type": "string", "format": "password", "writeOnly": True}, None),
        (
            {"type": "any", "required": True, "enum": [], "minLength": "1", "title": "T", "x-a": 1},
            {},
        ),
        ({"description": "<p>A  <b>b</b>\n</p>"}, {"description": "A b"}),
        (
            {
                "type": "object",
                "required": ["id", "a"],
                "properties": {"id": {"readOnly": True}, "a": {}},
            },
            {"type": "object", "required": ["a"], "properties": {"a": {}}},
        ),
    ],
)
def test_a_schema_of_3_0_becomes_json_schema(given: Any, made: Any) -> None:
    assert _converted(given) == (given if made is None else made)


def test_3_1_has_bounds_as_numbers() -> None:
    assert _converted({"exclusiveMinimum": 1}, "3.1.0") == {"exclusiveMinimum": 1}


def test_what_refers_to_itself_stays_a_reference() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    whole = _converted(
        {"$ref": "#/components/schemas/Alias"},
        Node=node,
        Alias={"$ref": "#/components/schemas/Node"},
    )
    assert whole["$ref"] == "#/$defs/Node"
    assert whole["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}


def test_what_takes_too_much_room_is_left_open_where_it_is_farthest() -> None:
    many: dict[str, Any] = {
        f"S{n}": {
            "type": "object",
            "properties": {
                **{
                    f"property_{n}_{m}": {"type": "string", "description": "d" * 200}
                    for m in range(20)
                },
                "next": {"$ref": f"#/components/schemas/S{n + 1}"},
            },
        }
        for n in range(100)
    } | {"S100": {}}
    whole = _converted({"$ref": "#/components/schemas/S0"}, **many)
    assert len(json.dumps(whole)) < 2 * MOST_DEFINITIONS
    assert "property_0_19" in whole["$defs"]["S0"]["properties"]
    assert whole["$defs"]["S99"] == {}
