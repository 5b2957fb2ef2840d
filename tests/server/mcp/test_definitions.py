from __future__ import annotations

from typing import Annotated

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
from pydantic import BaseModel, Field

import tools
from server.mcp.definitions import RARELY_GIVEN, describe, lean
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.schema_reading import resolve
from tools.core.discovery import discover
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec, tool


def _builtin() -> tuple[ToolSpec, ...]:
    registry = ToolRegistry()
    discover(registry, tools)
    return registry.specs()


class Window(BaseModel):
    """From start to end.

    Attributes:
        start: The first moment.
        end: The last one.
        timezone: Whose days.
        summary: In words.
    """

    start: float
    end: float | None = None
    timezone: str = "UTC"
    summary: str


class Step(BaseModel):
    """A step, and those after it."""

    name: str
    after: list[Step] = []


@tool()
def look(
    query: Annotated[str, Field(min_length=1, max_length=10, description="What")],
    raw_id: str,
    windows: Annotated[list[int], Field(min_length=2, max_length=2, description="From, to")],
    window: Annotated[Window | None, Field(description="When")] = None,
    agent_id: str = "",
) -> str:
    """Looks.

    Args:
        raw_id: Whose.
        agent_id: Which.
    """
    return f"{query}{raw_id}{windows}{window}{agent_id}"


@tool(title="Inspect")
def look_well(step: Step) -> None:
    """Looks well.

    Args:
        step: The first.
    """


def test_a_lean_tool_has_what_most_calls_need() -> None:
    slim = lean(describe(FunctionToMCP.convert(look)))
    assert slim.title is None
    assert slim.output_schema == {"type": "object"}
    assert slim.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What"},
            "raw_id": {"type": "string", "description": "Whose."},
            "windows": {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 2,
                "maxItems": 2,
                "description": "From, to",
            },
            "window": {
                "type": "object",
                "properties": {
                    "start": {"type": "number"},
                    "end": {"type": "number"},
                    "summary": {"type": "string"},
                },
                "required": ["start", "summary"],
                "description": "When. From start to end.",
            },
        },
        "required": ["query", "raw_id", "windows"],
    }


def test_what_refers_to_itself_keeps_its_definitions() -> None:
    slim = lean(describe(FunctionToMCP.convert(look_well)))
    assert slim.title == "Inspect"
    assert slim.input_schema["additionalProperties"] is False
    jsonschema.Draft202012Validator(slim.input_schema).validate(
        {"step": {"name": "a", "after": [{"name": "b"}]}}
    )


@pytest.mark.parametrize("spec", _builtin(), ids=lambda spec: spec.name)
def test_the_lean_form_of_a_tool_says_less_and_nothing_else(spec: ToolSpec) -> None:
    whole, slim = spec.input_schema, lean(describe(spec)).input_schema
    jsonschema.Draft202012Validator.check_schema(slim)
    left_out = whole["properties"].keys() - slim["properties"].keys()
    assert left_out <= RARELY_GIVEN
    assert slim.get("required", []) == whole.get("required", [])
    assert ("additionalProperties" in slim) is (not left_out)
    for name, short in slim["properties"].items():
        long = {**resolve(whole["properties"][name], whole), **whole["properties"][name]}
        assert short["description"]
        for word in ("type", "enum", "minimum", "maximum", "default", "required"):
            assert short.get(word) == long.get(word)
