"""Validation: everything wrong at once, hostile values, and agreement with the schema."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr, model_validator
from typing_extensions import TypedDict

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError
from tools.core.spec import Alias, ToolSpec


class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"


@dataclass
class Filters:
    start: int
    end: int | None = None


class Range(BaseModel):
    start: int
    end: int

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.start > self.end:
            raise ValueError("The start comes after the end.")
        return self


def search(  # noqa: PLR0913, PLR0917  # one parameter a kind
    query: Annotated[str, "What to find."],
    filters: Filters | None = None,
    mode: Mode = Mode.FAST,
    lines: list[Range] | None = None,
    top_k: Annotated[int, Field(ge=1, le=100)] = 5,
    anything: Any = None,
) -> None:
    """Searches."""


SEARCH = FunctionToMCP.convert(search)


def _complaints(spec: ToolSpec, raw: Any) -> list[str]:
    with pytest.raises(InvalidArgumentsError) as caught:
        spec.validate(raw)
    first, *lines = caught.value.message.splitlines()
    assert first == f"The arguments of {spec.name} are wrong:"
    return [line.removeprefix("- ") for line in lines]


def test_everything_wrong_is_reported_at_once() -> None:
    raw = {
        "quer": "x",
        "filters": {"start": "soon"},
        "mode": "fasst",
        "lines": [{"start": 2, "end": 1}, {"start": 1}],
        "top_k": 500,
    }
    assert _complaints(SEARCH, raw) == [
        "`quer` is unknown; did you mean `query`?",
        "`query` is missing; add a string: What to find.",
        "`filters.start` is 'soon'; send an integer.",
        "`mode` is 'fasst'; send one of 'fast', 'slow' (did you mean 'fast'?).",
        "`lines[0]` is {'end': 1, 'start': 2}; The start comes after the end.",
        "`lines[1].end` is missing; add an integer.",
        "`top_k` is 500; send an integer from 1 to 100.",
    ]


def test_near_names_are_suggestions_and_the_next_action_is_said() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        SEARCH.validate({"query": "x", "topK": 3})
    assert caught.value.suggestions == ("top_k",)
    assert caught.value.next_actions == ("Correct what is listed and call search again.",)


@pytest.mark.parametrize("raw", [None, [1], "x", 5])
def test_arguments_that_are_no_object_are_refused(raw: object) -> None:
    (line,) = _complaints(SEARCH, raw)
    assert line == f"they are {raw!r}; send an object with the arguments by name."


def test_a_tool_without_arguments_says_that_there_are_none() -> None:
    spec = FunctionToMCP.convert(lambda: None, name="nothing")
    assert spec.validate({}) == {}
    assert _complaints(spec, {"x": 1}) == [
        "`x` is unknown; leave it out; there is nothing to give."
    ]


def test_defaults_are_part_of_what_validation_returns() -> None:
    assert SEARCH.validate({"query": "x", "top_k": "7", "filters": '{"start": 1}'}) == {
        "query": "x",
        "filters": Filters(1),
        "mode": Mode.FAST,
        "lines": None,
        "top_k": 7,
        "anything": None,
    }


class Named(TypedDict):
    names: list[str]


@pytest.mark.parametrize("kind", [list[Named], list[dict[str, Any]], Any])
def test_what_is_done_to_the_arguments_is_not_done_to_what_was_sent(kind: Any) -> None:
    def name(people: Any) -> None:
        """Names them."""

    name.__annotations__["people"] = kind
    raw = {"people": [{"names": ["Ann"]}]}
    values = FunctionToMCP.convert(name).validate(raw)
    values["people"][0]["names"].append("Bo")
    assert raw == {"people": [{"names": ["Ann"]}]}


def test_null_is_the_default_except_where_it_is_a_value() -> None:
    def pick(plain: int = 3, nullable: int | None = 3, free: Any = 3) -> None:
        """Picks."""

    spec = FunctionToMCP.convert(pick)
    assert spec.validate({"plain": None, "nullable": None, "free": None}) == {
        "plain": 3,
        "nullable": None,
        "free": None,
    }


def test_what_is_wrong_in_an_object_that_may_be_null_is_told_by_its_place() -> None:
    def plan(step: Range | None, steps: dict[str, list[Range | None] | None]) -> None:
        """Plans."""

    sent = {"step": {"start": "x", "end": 1}, "steps": {"a": None, "b": [None, {"start": 1}]}}
    assert _complaints(FunctionToMCP.convert(plan), sent) == [
        "`step.start` is 'x'; send an integer.",
        "`steps.b[1].end` is missing; add an integer.",
    ]


def test_a_secret_that_may_be_null_does_not_show_its_default() -> None:
    def log_in(key: SecretStr | None = SecretStr("hush")) -> None:  # noqa: B008  # the shape
        """Logs in."""

    schema = FunctionToMCP.convert(log_in).input_schema["properties"]["key"]
    assert "default" not in schema
    assert {"type": "null"} in schema["anyOf"]


def test_a_text_that_may_be_a_string_is_not_read_as_json() -> None:
    def keep(text: str, either: str | list[str], free: Any) -> None:
        """Keeps."""

    raw = {"text": "null", "either": '["a"]', "free": "[1]"}
    assert FunctionToMCP.convert(keep).validate(raw) == raw


def _deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        _deep(100_000),
        "[" * 100_000,
        10**6000,
        "9" * 6000,
        "x" * 1_000_000,
        {"a" * 100_000: 1},
        "\ud800",
        float("nan"),
        [None] * 10_000,
    ],
    ids=["deep", "deep_text", "integer", "digits", "long", "key", "surrogate", "nan", "many"],
)
def test_a_hostile_value_is_a_short_complaint(value: object) -> None:
    raw = {"query": "x", "lines": value, "top_k": value, "mode": value, "filters": value}
    text = "\n".join(_complaints(SEARCH, raw))
    assert "`top_k` is" in text or "nested too deeply" in text
    assert len(text) < 4_000


def test_a_hostile_name_is_a_short_complaint() -> None:
    (line,) = _complaints(SEARCH, {"query": "x", "q\ud800" * 100_000: 1})
    assert len(line) < 300
    line.encode()


def test_thousands_of_unknown_names_are_counted_not_listed() -> None:
    lines = _complaints(SEARCH, {"query": "x", **{f"name{number}": 1 for number in range(5000)}})
    assert len(lines) == 6
    assert lines[-1] == "4995 more names are unknown."


def test_true_is_not_the_number_one() -> None:
    raw = {"query": "x", "top_k": True, "lines": [{"start": False, "end": 1}], "anything": True}
    assert _complaints(SEARCH, raw) == [
        "`lines[0].start` is False; send an integer.",
        "`top_k` is True; send an integer from 1 to 100.",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("from_entity", "source"),
        ("toEntity", "target"),
        ("max-results", "limit"),
        ("search_term", "query"),
        ("colour", None),
    ],
)
def test_an_unknown_name_with_a_word_of_the_same_meaning_is_recognized(
    name: str, meant: str | None
) -> None:
    def link(source: str, target: str, query: str = "", limit: int = 9) -> str:
        return f"{source} {target} {query} {limit}"

    given = {"source": "x", "target": "y", name: 1 if meant == "limit" else "z"}
    (line,) = _complaints(FunctionToMCP.convert(link), given)
    assert line.startswith(f"`{name}` is unknown; ")
    assert (f"did you mean `{meant}`?" in line) == (meant is not None)


def test_thousands_of_wrong_items_are_counted_not_listed() -> None:
    lines = _complaints(SEARCH, {"query": "x", "lines": ["wrong"] * 5_000})
    assert lines[4] == "`lines[4]` is 'wrong'; send an object with `start`, `end`."
    assert lines[5:] == ["`lines` has 4995 more wrong values."]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"source": "x", "count": 2}, "`source` is unknown; did you mean `text`?"),
        ({"source": 5, "count": 2}, "`source` is unknown; leave it out"),
        ({"separator": 2, "text": "x"}, "`separator` is unknown; did you mean `count`?"),
        ({"source": "x", "number": 2}, "`number` is unknown; did you mean `count`?"),
        ({"source": "x", "title": "y", "count": 2}, "`title` is unknown; leave it out"),
    ],
)
def test_an_unknown_name_stands_for_the_one_argument_of_its_type_that_is_missing(
    given: dict[str, Any], line: str
) -> None:
    def repeat(text: str, count: int, separated: str = "") -> str:
        return separated.join([text] * count)

    with pytest.raises(InvalidArgumentsError) as caught:
        FunctionToMCP.convert(repeat).validate(given)
    assert line in caught.value.message


def test_a_name_that_would_mean_two_arguments_is_refused() -> None:
    def swap(a: Annotated[str, Alias("b")], b: str) -> str:
        return b + a

    with pytest.raises(ToolDefinitionError, match=r"arguments b of swap are ambiguous"):
        FunctionToMCP.convert(swap)
