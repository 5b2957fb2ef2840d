from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from tools.core.cards import groups, parameters, signature, summary
from tools.core.function_to_mcp import FunctionToMCP
from tools.core.spec import ToolSpec, tool


class Window(BaseModel):
    start: float | None = None
    end: float | None = None


def look(
    kinds: list[str],
    metadata: dict[str, int],
    mode: Literal["fast", "deep"] = "fast",
    window: Window | None = None,
    at: Annotated[float | str | None, Field(description="When")] = None,
) -> str:
    """Looks.

    Args:
        kinds: Which.
        metadata: More.
        mode: How.
        window: From when to when.
    """
    return f"{kinds}{metadata}{mode}{window}{at}"


SPEC = FunctionToMCP.convert(look)


def test_a_signature_marks_what_may_be_left_out() -> None:
    assert signature(SPEC) == "look(kinds, metadata, mode?, window?, at?)"


def test_parameters_have_their_types() -> None:
    assert parameters(SPEC) == (
        "look(kinds: [string], metadata: object, mode?: fast|deep, window?: {start?, end?}, "
        "at?: number|string)"
    )


@pytest.mark.parametrize(
    ("description", "first"),
    [
        ("Reads. Then writes.", "Reads."),
        ("Reads a file.txt of\nour own. Then writes.", "Reads a file.txt of our own."),
        ("Reads", "Reads"),
        ("Reads!\n\nMore.", "Reads!"),
        ("", ""),
    ],
)
def test_a_summary_is_the_first_sentence(description: str, first: str) -> None:
    assert summary(description) == first


def spec(name: str, *tags: str, source: str = "builtin") -> ToolSpec:
    def function() -> None:
        """Does."""

    return FunctionToMCP.convert(tool(tags=tags)(function), name=name, source=source)


def test_groups_are_counted_the_largest_first() -> None:
    specs = [
        spec("a", "context", "documents"),
        spec("b", "context", "documents", "retrieval"),
        spec("c", "files"),
        spec("d", source="function:saws.py"),
    ]
    assert groups(specs) == "context 2 (documents 2, retrieval 1), files 1, function 1"


def test_without_tools_there_are_no_groups() -> None:
    assert groups([]) == ""
