"""What a tool is: results, failures, marks and the forms that others take."""

import pytest

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core import errors
from tools.core.errors import (
    InvalidArgumentsError,
    ToolDefinitionError,
    ToolError,
    UnknownToolError,
)
from tools.core.result import ToolFailure, ToolResult
from tools.core.spec import Effect, ToolOptions, ToolScope, tool


def _greet(who: str = "you") -> str:
    """Greets."""
    return f"Hello {who}"


def test_a_failure_tells_its_type_its_message_and_what_to_do() -> None:
    error = UnknownToolError("No tool 'red'.", suggestions=["read"], next_actions=["Call read."])
    result = ToolResult.failure(error)
    assert result.is_error
    assert result.structured == {
        "error_type": "unknown_tool",
        "message": "No tool 'red'.",
        "suggestions": ["read"],
        "next_actions": ["Call read."],
    }
    assert result.text == "unknown_tool: No tool 'red'.\nDid you mean: read\nNext: Call read."


def test_a_failure_without_advice_is_one_line() -> None:
    assert ToolFailure.of(InvalidArgumentsError("No.")).to_text() == "invalid_arguments: No."


TYPED = [each for each in ToolError.__subclasses__() if "error_type" in vars(each)]


@pytest.mark.parametrize("error", TYPED, ids=lambda error: error.__name__)
def test_every_error_of_the_tree_has_a_type_of_the_closed_list(error: type[ToolError]) -> None:
    assert ToolFailure.of(error("It failed.")).error_type == error.error_type
    assert error.__name__ in errors.__all__


def test_no_two_errors_share_a_type() -> None:
    kinds = [error.error_type for error in TYPED]
    assert len(set(kinds)) == len(kinds)


def test_a_marked_function_is_the_function_itself() -> None:
    def read() -> int:
        return 1

    marked = tool(scope=ToolScope.SYSTEM, effects={Effect.READ, Effect.EXTERNAL})(read)
    assert marked is read
    options = read.__tool_options__  # type: ignore[attr-defined]  # the mark
    assert options == ToolOptions(
        scope=ToolScope.SYSTEM, effects=frozenset({Effect.READ, Effect.EXTERNAL})
    )


def test_a_mark_without_parentheses_says_nothing_and_marks() -> None:
    def read() -> int:
        return 1

    assert tool(read) is read
    assert read.__tool_options__ == {}  # type: ignore[attr-defined]  # the mark
    with pytest.raises(ToolDefinitionError, match=r"write @tool\(name=…\)"):
        tool("greet")  # type: ignore[call-overload]  # what is tested


@pytest.mark.parametrize(
    ("effects", "read_only", "open_world"),
    [
        ({Effect.READ}, True, False),
        ({Effect.READ, Effect.EXTERNAL}, False, True),
        ({Effect.WRITE}, False, False),
    ],
)
def test_hints_follow_from_the_effects(
    effects: set[Effect], *, read_only: bool, open_world: bool
) -> None:
    spec = FunctionToMCP.convert(_greet, name="greet", effects=effects)
    assert (spec.read_only, spec.open_world) == (read_only, open_world)


def test_a_spec_has_the_function_calling_form() -> None:
    assert FunctionToMCP.convert(_greet, name="greet").function_calling() == {
        "type": "function",
        "function": {
            "name": "greet",
            "description": "Greets.",
            "parameters": {
                "type": "object",
                "properties": {"who": {"default": "you", "type": "string"}},
                "additionalProperties": False,
            },
        },
    }


def test_a_function_is_run_once_for_its_client_and_a_tool_of_ours_where_it_says_so() -> None:
    @tool(resumable=True)
    def carried() -> None:
        """Goes on."""

    assert FunctionToMCP.convert(_greet, source="function:greetings.py").resumable
    assert not FunctionToMCP.convert(_greet, source="builtin").resumable
    assert FunctionToMCP.convert(carried, source="builtin").resumable
    assert not FunctionToMCP.convert(
        _greet, source="function:greetings.py", resumable=False
    ).resumable
