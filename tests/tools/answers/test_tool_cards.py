import time
from dataclasses import replace
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tools.answers.tool_cards import FoundTools, card, clipped_line, groups, parameters
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.spec import ToolSpec, tool
from tools.retrieval.catalogue import Found
from tools.retrieval.models import ToolRecord


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


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (100, ("(kinds: [str], metadata: object, mode?, window?, at?)", "Looks.")),
        (59, ("(kinds: [str], metadata: object, mode?, window?, …)", "Looks.")),
        (45, ("(kinds: [str], metadata: object, …)", "Looks.")),
        (35, ("(kinds, metadata, mode?, …)", "Looks.")),
        (20, ("(kinds, …)", "Looks.")),
    ],
)
def test_a_card_tells_required_parameters_first_and_what_it_leaves_out(
    room: int, expected: tuple[str, str]
) -> None:
    assert card(SPEC.input_schema, SPEC.description, room) == expected


WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner),
    max_leaves=5,
)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "properties": WILD
        | st.dictionaries(
            st.text(max_size=90),
            st.fixed_dictionaries(
                {},
                optional={
                    "type": WILD | st.sampled_from(["string", "array", "object"]),
                    "enum": WILD,
                    "items": WILD,
                    "anyOf": WILD,
                    "$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/a", "https://x/y"]),
                },
            ),
            max_size=6,
        ),
        "required": WILD | st.lists(st.text(max_size=90), max_size=6),
        "$defs": WILD,
    },
)


@given(schema=SCHEMAS, description=st.text(max_size=300), room=st.integers(20, 700))
def test_a_card_has_room_whatever_its_tool_is_like(
    schema: dict[str, Any], description: str, room: int
) -> None:
    made = card(schema, description, room)
    assert len(f"{made.signature}: {made.summary}") <= room
    assert (made.signature + made.summary).isprintable()


@given(schema=SCHEMAS)
def test_parameters_of_any_schema_are_told(schema: dict[str, Any]) -> None:
    assert parameters(replace(SPEC, input_schema=schema)).startswith("look(")


def test_a_type_that_contains_itself_ends() -> None:
    tree = {"type": "array", "items": {"$ref": "#/properties/tree"}}
    schema = {"properties": {"tree": tree}, "required": ["tree"]}
    assert card(schema, "", 100).signature == "(tree: [[[[any]]]])"


def test_a_type_that_grows_without_end_is_told_soon() -> None:
    part = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/a"}}] * 600}
    schema = {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": part}, "required": ["x"]}
    began = time.process_time()
    assert card(schema, "", 400).signature == "(x: [[any]])"
    assert time.process_time() - began < 0.5


def test_a_line_shows_what_can_be_seen_and_ends_at_a_word() -> None:
    assert clipped_line("a\u200bb\n c", 20) == "ab c"
    assert clipped_line("one two three", 10) == "one two…"
    assert clipped_line("x" * 20, 5) == "xxxx…"
    assert clipped_line("x", 0) == ""


def test_parameters_have_their_types() -> None:
    assert parameters(SPEC) == (
        "look(kinds: [string], metadata: object, mode?: fast|deep, window?: {start?, end?}, "
        "at?: number|string)"
    )


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
    assert groups(specs, 250) == "context 2 (documents 2, retrieval 1), files 1, function 1"
    assert groups(specs, 50) == "context 2, files 1, function 1"


def test_tools_of_other_servers_are_counted_by_server() -> None:
    specs = [
        spec("a", "files"),
        spec("b", "github", source="upstream:github"),
        spec("c", "slack", source="upstream:slack"),
        spec("d", "slack", source="upstream:slack"),
    ]
    assert groups(specs, 250) == "files 1; other servers: slack 2, github 1"


def test_groups_without_number_have_room() -> None:
    specs = [spec(f"t{n}", f"group{n}", source=f"upstream:server{n}") for n in range(200)]
    specs += [spec(f"u{n}", f"group{n}", "x" * 40) for n in range(200)]
    told = groups(specs, 250)
    assert len(told) <= 250
    assert "more; other servers: server0 1, " in told
    assert told.endswith(" more")


def test_without_tools_there_are_no_groups() -> None:
    assert groups([], 250) == ""


@pytest.mark.parametrize(
    ("score", "shown"), [(1.0, "1.00"), (0.4363, "0.44"), (0.0061, "0.01"), (0.0003, "<0.01")]
)
def test_no_score_is_shown_as_none(score: float, shown: str) -> None:
    record = ToolRecord(tool_id="saw", name="saw", description="Saws wood.")
    text = FoundTools.of([Found(record, None, score)]).to_text()
    assert text.split()[-1] == shown
