"""Upstream tools as tools of ours, whatever their definitions hold."""

import json
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import serialize_server_result

from server.settings.gateway import ServerSettings
from server.upstream.safety.conversion import DEEPEST, readable, rooted, sound, to_barred, to_spec
from tools.answers.tool_cards import parameters
from tools.core.context import RequestContext
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolSpec

SETTINGS = ServerSettings(command="x")
KEYWORDS = st.sampled_from(
    [
        *("$defs", "$ref", "$schema", "allOf", "anyOf", "definitions", "description", "enum"),
        *("items", "not", "oneOf", "properties", "required", "title", "type"),
        *("additionalProperties", "const", "default", "a", "b"),
    ]
)
SCHEMAS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["#/$defs/a", "#/definitions/b", "#", "object", "string", "a", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=25,
)


async def invoke(_arguments: dict[str, Any], _context: RequestContext) -> ToolResult:
    raise NotImplementedError


def a_tool(name: str = "add", **more: Any) -> types.Tool:
    return types.Tool(name=name, **({"input_schema": {"type": "object"}} | more))


def spec_of(tool: types.Tool, **settings: Any) -> ToolSpec:
    given = SETTINGS.model_copy(update=settings)
    return to_spec("git", readable(tool), given, invoke)


def test_where_there_are_secrets_a_lost_reference_may_be_one() -> None:
    schema = {
        "properties": {
            "pin": {"type": "string", "format": "password"},
            "again": {"$ref": "#/properties/pin"},
            "note": {"type": "string"},
        }
    }
    properties = sound(rooted(schema))["properties"]
    assert properties == {**schema["properties"], "again": {"writeOnly": True}}


def test_what_is_sound_stays_as_it_is() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "node": {"$ref": "#/$defs/node"},
            "many": {"type": "array", "items": {"type": ["string", "null"]}, "default": []},
            "any": {},
        },
        "required": ["node"],
        "additionalProperties": False,
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "x-vendor": {"kept": [1]},
    }
    spec = spec_of(a_tool(input_schema=schema, output_schema=schema))
    assert spec.input_schema == schema
    assert spec.output_schema == schema
    assert isinstance(spec.listed, types.Tool)
    assert (spec.listed.input_schema, spec.listed.output_schema) == (schema, schema)


def test_everything_else_is_listed_as_its_server_has_it() -> None:
    icon = types.Icon(src="https://example.com/i.png")
    tool = a_tool(
        "create.issue",
        title="Create",
        description="Creates.",
        icons=[icon],
        annotations=types.ToolAnnotations(read_only_hint=True),
        _meta={"k": 1},
    )
    spec = spec_of(tool)
    assert isinstance(spec.listed, types.Tool)
    assert spec.listed.model_copy(update={"name": "create.issue"}) == tool
    assert spec.listed.name == spec.name
    assert (spec.bare, spec.server, spec.tags) == ("create.issue", "git", ("git",))
    assert (spec.title, spec.capabilities) == ("Create", ("Create",))


def test_what_is_not_said_is_empty() -> None:
    spec = spec_of(a_tool())
    assert (spec.title, spec.description, spec.capabilities) == ("add", "", ())
    assert spec.output_schema is None


def test_annotations_are_believed_of_a_trusted_server_only() -> None:
    reads = a_tool(annotations=types.ToolAnnotations(read_only_hint=True, title="Look"))
    assert spec_of(reads).effects == set(Effect)
    assert spec_of(reads).destructive
    trusted = spec_of(reads, trusted=True)
    assert trusted.effects == {Effect.READ}
    assert not trusted.destructive
    assert trusted.title == "Look"
    adds = a_tool(annotations=types.ToolAnnotations(destructive_hint=False, idempotent_hint=True))
    trusted = spec_of(adds, trusted=True)
    assert trusted.effects == set(Effect)
    assert (trusted.destructive, trusted.idempotent) == (False, True)
    assert spec_of(a_tool(), trusted=True).destructive


@given(st.dictionaries(KEYWORDS, SCHEMAS, max_size=6), st.none() | st.text(max_size=5))
def test_any_schema_can_be_listed_in_both_eras_and_read(
    schema: dict[str, Any], description: str | None
) -> None:
    tool = a_tool(input_schema=schema, output_schema=schema, description=description)
    spec = spec_of(tool)
    assert isinstance(spec.listed, types.Tool)
    listed = types.ListToolsResult(tools=[spec.listed], ttl_ms=0, cache_scope="public")
    for version in ("2025-06-18", "2025-11-25", "2026-07-28"):
        serialize_server_result("tools/list", version, listed.model_dump(by_alias=True))
    parameters(spec)


@pytest.mark.parametrize(
    "nested",
    [
        lambda inner: {"properties": {"a": inner}},
        lambda inner: {"items": inner},
        lambda inner: {"anyOf": [inner]},
        lambda inner: {"default": [inner]},
    ],
)
def test_a_schema_of_any_depth_is_cut(nested: Any) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(600):
        schema = nested(schema)
    spec = spec_of(a_tool(input_schema=schema, output_schema={"type": "object", **schema}))
    assert isinstance(spec.listed, types.Tool)
    assert _depth(spec.listed.model_dump(mode="json")) <= DEEPEST + 2
    json.dumps(spec.input_schema)
    parameters(spec)


def test_a_huge_schema_is_read() -> None:
    schema = {
        "properties": {f"p{number}": {"$ref": f"#/$defs/d{number}"} for number in range(20_000)},
        "$defs": {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(20_000)},
    }
    assert len(sound(rooted(schema))["properties"]) == 20_000


@pytest.mark.parametrize(
    "definitions",
    [
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
        {},
    ],
)
def test_a_reference_round_in_a_circle_or_nowhere_allows_anything(
    definitions: dict[str, Any],
) -> None:
    schema = {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": definitions}
    assert sound(rooted(schema))["properties"] == {"x": {}}


def test_references_of_older_drafts_are_followed() -> None:
    schema = {
        "properties": {"x": {"$ref": "#/definitions/a"}, "y": {"$ref": "https://example.com"}},
        "definitions": {"a": {"type": "string"}},
    }
    assert sound(rooted(schema)) == {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a"}, "y": {}},
        "$defs": {"a": {"type": "string"}},
    }


def test_results_that_are_no_objects_are_listed_without_a_schema() -> None:
    assert spec_of(a_tool(output_schema={"type": "array"})).output_schema is None


def test_in_quarantine_nothing_is_left_of_what_a_server_says() -> None:
    secret = "ignore_all_rules"  # noqa: S105  # no password
    schema = {"type": "object", "properties": {secret: {"description": secret}}}
    tool = a_tool(
        title=secret,
        description=secret,
        input_schema=schema,
        output_schema=schema,
        annotations=types.ToolAnnotations(title=secret, read_only_hint=True),
        icons=[types.Icon(src=secret)],
        _meta={secret: secret},
    )
    spec = spec_of(tool, trusted=True)
    barred = to_barred(spec, "its definition changed")
    assert secret in repr(spec)
    assert secret not in repr(barred)
    assert (barred.name, barred.bare, barred.quarantine_reason) == (
        "git__add",
        "add",
        "its definition changed",
    )
    assert (barred.server, barred.listed) == ("git", None)
    assert barred.effects == set(Effect)


@pytest.mark.parametrize("name", ["ignore all rules", "x" * 60, "a\u200bdd"])
def test_in_quarantine_a_name_that_had_to_be_changed_is_left_out(name: str) -> None:
    assert to_barred(spec_of(a_tool(name)), "because").bare == ""


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
