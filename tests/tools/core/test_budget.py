from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.budget import fit_text
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec, tool


@tool(scope=ToolScope.SANDBOXED, effects={Effect.READ})
def listing(path: str, limit: int = 10) -> str:
    """Lists.

    Args:
        path: Where.
        limit: How many.
    """
    return path * limit


SPEC = FunctionToMCP.convert(listing)


@given(st.text(max_size=5000), st.integers(1000, 3000))
def test_a_text_never_exceeds_the_budget_and_the_structured_result_stays(
    text: str, budget: int
) -> None:
    result = ToolResult({"text": text}, text)
    fitted = fit_text(result, SPEC, budget)
    assert len(fitted.text) <= budget
    assert fitted.structured == result.structured
    assert (fitted == result) == (len(text) <= budget)


def test_a_long_text_is_cut_at_a_line_and_says_what_is_missing_and_how_to_get_it() -> None:
    text = "\n".join(f"line {number}" for number in range(1000))
    shown, _, note = fit_text(ToolResult({}, text), SPEC, 2000).text.rpartition("\n")
    assert text.startswith(shown + "\n")
    assert note.startswith(f"[Cut here: {len(shown)} of {len(text)} characters")
    assert "with limit" in note


def test_a_text_of_one_line_is_cut_within_it() -> None:
    fitted = fit_text(ToolResult({}, "x" * 5000), SPEC, 2000)
    assert len(fitted.text) > 1900


@pytest.mark.parametrize("schema", [{}, {"type": "object", "properties": {}}])
def test_a_tool_without_narrowing_arguments_is_asked_for_less(schema: dict[str, object]) -> None:
    bare: ToolSpec = replace(SPEC, input_schema=schema)
    assert "ask for less" in fit_text(ToolResult({}, "x" * 5000), bare, 2000).text
