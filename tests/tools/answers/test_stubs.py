"""Stubs of tools: Python that a program can be written by."""

import ast
import time
from collections.abc import Mapping
from typing import Any

import pytest

import tools
from tools.answers.stubs import stub
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.discovery import discover
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolScope, ToolSpec

REGISTRY = ToolRegistry()
discover(REGISTRY, tools)


def parsed(line: str) -> ast.AsyncFunctionDef:
    head, _, comment = line.partition("  # ")
    (function,) = ast.parse(f"{head}: ...").body
    assert isinstance(function, ast.AsyncFunctionDef)
    assert comment
    assert "\n" not in line
    return function


def foreign(schema: Mapping[str, Any], result: Mapping[str, Any] | None = None) -> str:
    """The stub of a tool of another server, with such schemas."""
    return stub(
        ToolSpec(
            name="far",
            title="",
            description="Does it. And more.",
            input_schema=schema,
            output_schema=result,
            scope=ToolScope.MCP,
            effects=frozenset(),
            validate=dict,
            invoke=lambda _arguments, _context: pytest.fail("nobody calls it"),
            source="upstream:far",
        ),
        "Does it. And more.",
    )


@pytest.mark.parametrize("spec", REGISTRY.specs(), ids=lambda spec: spec.name)
def test_the_stub_of_a_tool_is_python_and_names_each_argument(spec: ToolSpec) -> None:
    line = stub(spec, spec.description)
    named = [each.arg.rstrip("_") for each in parsed(line).args.kwonlyargs]
    assert sorted(named) == sorted(spec.input_schema["properties"])
    assert len(line) < 2_000


def test_a_stub_says_types_defaults_and_what_comes_of_it() -> None:
    def harvest(plant: str, beds: int = 3, days: list[str] | None = None) -> dict[str, list[int]]:
        """Weighs what was harvested. In kilograms."""
        return {}

    spec = FunctionToMCP.convert(harvest)
    assert stub(spec, spec.description) == (
        "async def harvest(*, plant: str, beds: int = 3, days: list[str] = ...)"
        " -> dict[str, list[int]]  # Weighs what was harvested."
    )


def test_a_result_that_is_no_object_is_told_as_the_program_gets_it() -> None:
    def count(what: str) -> int:
        """Counts."""
        return len(what)

    assert " -> int  # " in stub(FunctionToMCP.convert(count), "Counts.")


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "object"}, "far() -> str"),
        ({"type": "object", "properties": None, "required": None}, "far() -> str"),
        (
            {"properties": {"b": True, "a": {"type": ["string", "null"]}}, "required": ["a"]},
            "far(*, a: str | None, b: Any = ...) -> str",
        ),
        (
            {"properties": {"as": {"const": 1}, "x-y": {"type": "string"}}},
            'far(*, as_: Literal[1] = ..., **others: {"x-y": str}) -> str',
        ),
        (
            {"properties": {"x-y": {"type": "object", "properties": {"z": {}}}}},
            'far(**others: {"x-y": {"z": NotRequired[Any]}}) -> str',
        ),
    ],
)
def test_a_schema_of_another_server_is_told_whatever_it_says(
    schema: dict[str, Any], told: str
) -> None:
    line = foreign(schema)
    assert line == f"async def {told}  # Does it."
    parsed(line)


def test_a_type_without_end_is_told_so_far() -> None:
    tree = {"$ref": "#/$defs/Tree"}
    properties = {f"branch{n}": tree for n in range(9)}
    schema = {
        "properties": {"tree": tree},
        "$defs": {"Tree": {"type": "object", "properties": properties}},
    }
    line = foreign(schema, schema)
    assert line.startswith("async def far(*, tree: {")
    assert len(line) < 2_000


REF = {"$ref": "#/$defs/a"}
WIDE = {"type": "object", "properties": {f"p{number}": REF for number in range(500)}}
HOSTILE = [
    {"anyOf": [REF] * 600},
    {"anyOf": [{"type": "array", "items": REF}] * 600},
    WIDE,
    {"type": "object", "additionalProperties": {"oneOf": [REF, *[WIDE] * 100]}},
]


@pytest.mark.parametrize("part", HOSTILE)
def test_a_schema_that_grows_without_end_is_told_soon(part: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"x": REF}, "$defs": {"a": part}}
    began = time.process_time()
    assert len(foreign(schema, schema)) < 2_000
    assert time.process_time() - began < 1
