"""Results: their schemas, their JSON and their texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, FiniteFloat, computed_field
from typing_extensions import TypedDict

from tools.core.conversion.output import Output
from tools.core.conversion.plain import plain
from tools.core.conversion.schema import types
from tools.core.conversion.signature import NOTHING
from tools.core.errors import InternalError, ToolDefinitionError
from tools.core.spec import ToolResult

MOMENT = datetime(2026, 3, 31, 12, tzinfo=UTC)


class Colour(Enum):
    RED = "red"


class Page(BaseModel):
    number: int
    data: bytes = b"\xff\xfe"

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way
    @property
    def even(self) -> bool:
        return self.number % 2 == 0


class Tree(BaseModel):
    children: list[Tree] = []


class Row(TypedDict):
    name: str


@dataclass
class Greeting:
    who: str
    at: datetime | None = None
    scores: list[float] = field(default_factory=list)

    def to_text(self) -> str:
        return f"Hello {self.who}"


class Opaque:
    def __str__(self) -> str:
        return "opaque"


RESULTS: list[tuple[Any, Any, dict[str, Any]]] = [
    (None, None, {"result": None}),
    (int, 3, {"result": 3}),
    (str, "a", {"result": "a"}),
    (float, float("nan"), {"result": None}),
    (float, float("-inf"), {"result": None}),
    (FiniteFloat, 1.5, {"result": 1.5}),
    (bytes, b"\xff\xfe?", {"result": "//4/"}),
    (set[int], {1}, {"result": [1]}),
    (tuple[int, str], (1, "a"), {"result": [1, "a"]}),
    (Colour, Colour.RED, {"result": "red"}),
    (datetime, MOMENT, {"result": "2026-03-31T12:00:00Z"}),
    (date, MOMENT.date(), {"result": "2026-03-31"}),
    (timedelta, timedelta(minutes=90), {"result": "PT1H30M"}),
    (Decimal, Decimal("1.10"), {"result": "1.10"}),
    (UUID, UUID(int=5), {"result": "00000000-0000-0000-0000-000000000005"}),
    (Path, Path("a/b"), {"result": "a/b"}),
    (list, [1, "a", None], {"result": [1, "a", None]}),
    (dict, {"a": [1]}, {"a": [1]}),
    (dict[int, str], {1: "a"}, {"1": "a"}),
    (Page, Page(number=2), {"number": 2, "data": "//4=", "even": True}),
    (Page | None, None, {"result": None}),
    (list[Page], [Page(number=1)], {"result": [{"number": 1, "data": "//4=", "even": False}]}),
    (Tree, Tree(children=[Tree()]), {"children": [{"children": []}]}),
    (Row, {"name": "a"}, {"name": "a"}),
    (Greeting, Greeting("you"), {"who": "you", "at": None, "scores": []}),
]


@pytest.mark.parametrize(
    ("returns", "value", "structured"), RESULTS, ids=lambda each: str(each)[:20]
)
def test_a_result_is_plain_json_that_fits_its_schema(
    returns: object, value: object, structured: dict[str, Any]
) -> None:
    output = Output("tool", returns)
    result = output.result(value)
    assert result.structured == structured
    assert output.schema is not None
    assert output.schema["type"] == "object"
    jsonschema.Draft202012Validator.check_schema(output.schema)
    jsonschema.validate(json.loads(json.dumps(result.structured)), output.schema)


UNTYPED: list[tuple[Any, Any, dict[str, Any]]] = [
    (NOTHING, {"a": 1}, {"a": 1}),
    (NOTHING, [1], {"result": [1]}),
    (Any, Greeting("x", MOMENT), {"who": "x", "at": "2026-03-31T12:00:00Z", "scores": []}),
    (object, Opaque(), {"result": "opaque"}),
    (Opaque, Opaque(), {"result": "opaque"}),
    (Callable[[], int], str, {"result": "<class 'str'>"}),
]


@pytest.mark.parametrize(
    ("returns", "value", "structured"), UNTYPED, ids=lambda each: str(each)[:20]
)
def test_a_result_without_a_type_has_a_form_and_no_schema(
    returns: object, value: object, structured: dict[str, Any]
) -> None:
    output = Output("tool", returns)
    assert output.schema is None
    assert output.result(value).structured == structured


def test_the_text_is_the_values_own_or_the_string_or_compact_json() -> None:
    assert Output("tool", Greeting).result(Greeting("you")).text == "Hello you"
    assert Output("tool", str).result("plain é").text == "plain é"
    assert Output("tool", dict).result({"a": [1, None], "é": "ö"}).text == '{"a":[1,null],"é":"ö"}'
    assert Output("tool", None).result(None).text == "null"


def test_an_optional_float_says_null_once() -> None:
    schema = Output("tool", float | None).schema
    assert schema is not None
    result = schema["properties"]["result"]
    assert result == {"type": ["number", "null"]}
    assert types(result, schema) == {"number", "null"}


def test_a_tool_result_is_the_answer_already() -> None:
    answer = ToolResult({"a": 1}, "text")
    assert Output("tool", ToolResult).result(answer) is answer
    assert Output("tool", ToolResult).schema is None


def test_a_subclass_is_cut_to_what_was_promised() -> None:
    class Secret(Page):
        secret: str = "s"  # noqa: S105  # a field's name

    assert "secret" not in Output("tool", Page).result(Secret(number=1)).structured


def _selfish() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _broken() -> Tree:
    tree = Tree()
    tree.children = "none"  # type: ignore[assignment]  # broken on purpose
    return tree


@pytest.mark.parametrize(
    ("returns", "value"),
    [(int, "a"), (Page, {"number": "x"}), (None, 1), (list, _selfish()), (Tree, _broken())],
    ids=["int", "model", "none", "selfish", "broken"],
)
def test_a_value_that_breaks_the_promise_is_an_internal_error(
    returns: object, value: object
) -> None:
    with pytest.raises(InternalError, match="tool returned the wrong type"):
        Output("tool", returns).result(value)


def test_a_return_type_that_is_not_defined_is_refused() -> None:
    class Loose(BaseModel):
        other: Missing  # type: ignore[name-defined]  # noqa: F821  # the shape

    with pytest.raises(ToolDefinitionError, match="The result of tool has a type"):
        Output("tool", Loose)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals()
    | st.uuids()
    | st.complex_numbers()
)
KEYS = st.text(max_size=3) | st.integers() | st.none() | st.tuples(st.integers(), st.booleans())


@given(
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
    )
)
def test_any_value_becomes_json_that_every_encoder_takes(value: object) -> None:
    json.dumps(plain(value), allow_nan=False, ensure_ascii=False).encode()
