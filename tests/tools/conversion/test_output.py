"""Results: their schemas, their JSON and their texts."""

from __future__ import annotations

import json
import re
import sqlite3
import typing
from collections import ChainMap, Counter, deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
)
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from fractions import Fraction
from io import BytesIO, IOBase, StringIO, TextIOWrapper
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Protocol, TypeVar
from uuid import UUID

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    PlainSerializer,
    computed_field,
    field_serializer,
    model_serializer,
)
from typing_extensions import Doc, TypedDict

from tools.conversion.callables.callables import NOTHING
from tools.conversion.results.output import Collected, Output
from tools.conversion.schema_reading import types
from tools.core.errors import ToolDefinitionError, ToolFailedError
from tools.core.result import OmitNone, ToolResult

MOMENT = datetime(2026, 3, 31, 12, tzinfo=UTC)


NaN = float("nan")


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Rights(Flag):
    READ = 1
    WRITE = 2


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


@dataclass(frozen=True)
class Spot:
    x: int


class Key(BaseModel, frozen=True):
    x: int


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
UserId = NewType("UserId", int)
ItemT = TypeVar("ItemT")


class Box(BaseModel, Generic[ItemT]):
    item: ItemT


class Polished(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")

    first: int = Field(1, serialization_alias="1st")
    hidden: str = Field("x", exclude=True)
    lasts: timedelta = timedelta(minutes=1)
    marked: int = 5

    @field_serializer("marked", when_used="json")
    def mark(self, value: int) -> str:
        return f"#{value}"


class Serialized(BaseModel):
    at: datetime = MOMENT
    size: Annotated[int, PlainSerializer(str)] = 5

    @field_serializer("at")
    def year(self, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # the shape
        return at.year


class Whole(BaseModel):
    x: int = 1

    @model_serializer
    def text(self):  # type: ignore[no-untyped-def]  # noqa: ANN201  # the shape
        return f"x is {self.x}"


@dataclass
class Invoice:
    net: int
    parts: list[Invoice] = field(default_factory=list)
    gross: int = field(init=False)

    def __post_init__(self) -> None:
        if self.net:
            self.gross = self.net * 2


class Folder(BaseModel):
    invoice: Invoice


class Named(Protocol):
    name: str


class Opaque:
    def __str__(self) -> str:
        return "opaque"


def _rows() -> list[sqlite3.Row]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("SELECT 1 AS a, 'x' AS b").fetchall()


RESULTS: list[tuple[Any, Any, dict[str, Any]]] = [
    (Serialized, Serialized(), {"at": 2026, "size": "5"}),
    (list[Whole], [Whole()], {"result": ["x is 1"]}),
    (Invoice, Invoice(1), {"net": 1, "parts": [], "gross": 2}),
    (
        list[Invoice],
        [Invoice(1, [Invoice(2)])],
        {"result": [{"net": 1, "parts": [{"net": 2, "parts": [], "gross": 4}], "gross": 2}]},
    ),
    (list[Named], [Opaque()], {"result": ["opaque"]}),
    (Decimal, Decimal("NaN"), {"result": "NaN"}),
    (list[Decimal], list(map(Decimal, ("1E+5", "-0E-10"))), {"result": ["1E+5", "-0E-10"]}),
    (dict[Decimal, Decimal | None], {Decimal("0.10"): None}, {"0.10": None}),
    (None, None, {"result": None}),
    (float, float("-inf"), {"result": None}),
    (FiniteFloat, 1.5, {"result": 1.5}),
    (datetime, MOMENT, {"result": "2026-03-31T12:00:00Z"}),
    (timedelta, timedelta(minutes=90), {"result": "PT1H30M"}),
    (UUID, UUID(int=5), {"result": "00000000-0000-0000-0000-000000000005"}),
    (Path, Path("a/b"), {"result": "a/b"}),
    (list, [1, "a", None], {"result": [1, "a", None]}),
    (dict[Colour, int], {Colour.RED: 1}, {"red": 1}),
    (dict[Key, int], {Key(x=1): 1}, {"x=1": 1}),
    (set[str], {"b", "c", "a"}, {"result": ["a", "b", "c"]}),
    (set[float], {NaN, float("inf"), 2.5, 1.5}, {"result": [None, 1.5, 2.5]}),
    (set[Key], {Key(x=2), Key(x=1)}, {"result": [{"x": 1}, {"x": 2}]}),
    (list[Spot], [Spot(1)], {"result": [{"x": 1}]}),
    (Level, Level.LOW, {"result": 1}),
    (Rights, Rights.READ | Rights.WRITE, {"result": 3}),
    (list[Point], [Point(1, NaN)], {"result": [[1, None]]}),
    (Literal["a", 1], 1, {"result": 1}),
    (UserId, UserId(7), {"result": 7}),
    (list[ItemT], ["a", 1], {"result": ["a", 1]}),  # type: ignore[valid-type]  # the shape
    (Annotated[int, "How many."], 3, {"result": 3}),
    (complex, 1 + 2j, {"result": "1+2j"}),
    (bytearray, bytearray(b"\xff"), {"result": "/w=="}),
    (memoryview, memoryview(b"\xff"), {"result": "/w=="}),
    (BytesIO, BytesIO(b"\xff"), {"result": "/w=="}),
    (StringIO, StringIO("a"), {"result": "a"}),
    (re.Pattern, re.compile("a+"), {"result": "a+"}),
    (
        re.Match,
        re.match("(?P<x>a)", "ab"),
        {"text": "a", "start": 0, "end": 1, "groups": ["a"], "named": {"x": "a"}},
    ),
    (re.Match | None, None, {"result": None}),
    (Exception, KeyError("a"), {"result": "KeyError: 'a'"}),
    (range, range(3), {"result": [0, 1, 2]}),
    (deque[int], deque([1]), {"result": [1]}),
    (list[str], {"a": 1}.keys(), {"result": ["a"]}),
    (KeysView, {"a": 1}.keys(), {"result": ["a"]}),
    (MappingProxyType, MappingProxyType({"a": 1}), {"a": 1}),
    (Mapping[str, int], MappingProxyType({"a": 1}), {"a": 1}),
    (Counter, Counter("aab"), {"a": 2, "b": 1}),
    (ChainMap, ChainMap({"a": 1}), {"a": 1}),
    (type, int, {"result": "int"}),
    (type[int], bool, {"result": "bool"}),
    (IPv4Address, IPv4Address("10.0.0.1"), {"result": "10.0.0.1"}),
    (Fraction, Fraction(1, 3), {"result": "1/3"}),
    (list[Opaque], [Opaque()], {"result": ["opaque"]}),
    (dict[str, Opaque | None], {"a": Opaque(), "b": None}, {"a": "opaque", "b": None}),
    (list[sqlite3.Row], _rows(), {"result": [{"a": 1, "b": "x"}]}),
    (Iterator[int], iter([1, 2]), {"result": [1, 2]}),
    (Iterable[int], (n for n in (1, 2)), {"result": [1, 2]}),
    (AsyncIterator[int], [1, 2], {"result": [1, 2]}),
    (Generator[int, None, None], [1, 2], {"result": [1, 2]}),
    (AsyncGenerator[int, None], [1, 2], {"result": [1, 2]}),
    (dict[str, Iterator[int]], {"a": iter([1])}, {"a": [1]}),
    (Iterator, iter([1]), {"result": [1]}),
    (Iterator[int] | None, None, {"result": None}),
    (Awaitable[int], 3, {"result": 3}),
    (Coroutine[Any, Any, Page], Page(number=2), {"number": 2, "data": "//4=", "even": True}),
    (list[typing.Self], [1], {"result": [1]}),  # type: ignore[misc]  # the shape
    (Page | str, "a", {"result": "a"}),
    (list[Page] | None, None, {"result": None}),
    (dict[str, Page], {"a": Page(number=1)}, {"a": {"number": 1, "data": "//4=", "even": False}}),
    (Pet, Dog(), {"result": {"kind": "dog"}}),
    (list[Pet], [Cat(), Dog()], {"result": [{"kind": "cat"}, {"kind": "dog"}]}),
    (Box[int], Box[int](item=1), {"item": 1}),
    (Box[list[Cat]], Box[list[Cat]](item=[Cat()]), {"item": [{"kind": "cat"}]}),
    (Polished, Polished(), {"1st": 1, "lasts": 60.0, "marked": "#5"}),
    (list[Tree], [Tree(children=[Tree()])], {"result": [{"children": [{"children": []}]}]}),
    (list[Page], [Page(number=1)], {"result": [{"number": 1, "data": "//4=", "even": False}]}),
    (Greeting, Greeting("you"), {"who": "you", "at": None, "scores": []}),
]


class Stay(BaseModel):
    nights: OmitNone[int]
    guest: OmitNone[str] = None
    stars: int | None = Field(exclude_if=lambda stars: stars > 3)
    note: str | None = None
    rooms: int = 1


@pytest.mark.parametrize(("returns", "value", "structured"), RESULTS)
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
    (Named, Opaque(), {"result": "opaque"}),
    (NOTHING, {"a": 1}, {"a": 1}),
    (NOTHING, [1], {"result": [1]}),
    (Any, Greeting("x", MOMENT), {"who": "x", "at": "2026-03-31T12:00:00Z", "scores": []}),
    (Any, [Page(number=1)], {"result": [{"number": 1, "data": "//4=", "even": False}]}),
    (object, Opaque(), {"result": "opaque"}),
    (Opaque, Opaque(), {"result": "opaque"}),
    (Callable[[], int], str, {"result": "str"}),
    (typing.Never, 1, {"result": 1}),
    (typing.NoReturn, 1, {"result": 1}),
    (typing.Self, 1, {"result": 1}),
    (ItemT, 1, {"result": 1}),
    (Awaitable, 1, {"result": 1}),
]


@pytest.mark.parametrize(("returns", "value", "structured"), UNTYPED)
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


def test_the_text_of_an_annotation_describes_the_result() -> None:
    for returns in (Annotated[int, "How many."], Annotated[int, Doc("How many.")]):
        schema = Output("tool", returns, "From the docstring.").schema
        assert schema is not None
        assert schema["properties"]["result"] == {"type": "integer", "description": "How many."}


def test_an_optional_float_says_null_once() -> None:
    schema = Output("tool", float | None).schema
    assert schema is not None
    result = schema["properties"]["result"]
    assert result == {"type": ["number", "null"]}
    assert types(result, schema) == {"number", "null"}


@given(st.decimals())
def test_whatever_decimal_is_sent_fits_its_schema(value: Decimal) -> None:
    output = Output("tool", list[Decimal])
    assert output.schema is not None
    jsonschema.validate(output.result([value]).structured, output.schema)


def test_a_field_that_is_left_out_if_it_is_none_is_no_union_with_null() -> None:
    schema = Output("tool", Stay).schema
    assert schema == {
        "type": "object",
        "properties": {
            "nights": {"type": "integer"},
            "guest": {"type": "string"},
            "stars": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "rooms": {"type": "integer", "default": 1},
        },
        "required": ["note", "rooms"],
    }
    sent = Output("tool", Stay).result(Stay(nights=None, stars=4)).structured
    assert sent == {"note": None, "rooms": 1}


def test_a_tool_result_is_the_answer_already() -> None:
    answer = ToolResult({"a": 1}, "text")
    assert Output("tool", ToolResult).result(answer) is answer
    assert Output("tool", ToolResult).schema is None


def test_a_model_of_the_author_stays_as_it_is() -> None:
    before = Folder.model_json_schema(mode="serialization")
    folder = Output("tool", Folder).result(Folder(invoice=Invoice(1)))
    assert folder.structured == {"invoice": {"net": 1, "parts": []}}
    assert Folder.model_json_schema(mode="serialization") == before


def test_a_field_that_was_never_set_is_a_failure_of_the_tool() -> None:
    with pytest.raises(ToolFailedError, match="Invoice does not match"):
        Output("tool", Invoice).result(Invoice(0))


def test_a_subclass_is_cut_to_its_return_type() -> None:
    class Secret(Page):
        secret: str = "s"  # noqa: S105  # a field's name

    assert "secret" not in Output("tool", Page).result(Secret(number=1)).structured


def _selfish() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


def _broken() -> Tree:
    tree = Tree()
    tree.children = "none"  # type: ignore[assignment]  # broken on purpose
    return tree


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        (int, "a"),
        (Page, {"number": "x"}),
        (None, 1),
        (list, _selfish()),
        (Any, _selfish()),
        (Any, _deep()),
        (Tree, _broken()),
        (Opaque, 1),
        (Iterator[int], ["a"]),
        (Iterable[str], "abc"),
        (Page | None, Cat()),
    ],
    ids=lambda each: str(type(each)),
)
def test_a_value_that_does_not_fit_the_return_type_is_a_failure_of_the_tool(
    returns: object, value: object
) -> None:
    with pytest.raises(ToolFailedError, match="tool returned the wrong type: "):
        Output("tool", returns).result(value)


async def _coroutine() -> None: ...


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda path: path.open(), "an open file; return what is in it, or its path"),
        (lambda _: {"a": _coroutine()}, "a coroutine inside its result; await it"),
        (lambda _: [count()], "more than 1,000,000 items; return fewer"),
        (lambda _: range(10**12), "more than 1,000,000 items; return fewer"),
        (lambda _: {1: "a", "1": "b"}, "a dict in which two keys have the same text"),
    ],
    ids=["file", "coroutine", "endless", "range", "keys"],
)
def test_a_value_that_cannot_be_sent_is_a_failure_of_the_tool_with_the_reason(
    tmp_path: Path, value: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    given = value(path)
    with pytest.raises(ToolFailedError, match=f"tool returned {reason}"):
        Output("tool", NOTHING).result(given)
    if isinstance(given, IOBase):
        given.close()


@pytest.mark.parametrize("returns", [typing.TextIO, typing.IO[bytes], TextIOWrapper])
def test_a_return_type_of_an_open_file_is_refused(returns: object) -> None:
    with pytest.raises(ToolDefinitionError, match="an open file, which cannot be sent; return"):
        Output("tool", returns)


def test_what_a_generator_returns_is_kept_or_missed_loudly() -> None:
    gone = Collected([1, 2], "done")
    whole = {"items": [1, 2], "returned": "done"}
    for returns in (
        Generator[int, None, str],
        Awaitable[Generator[int, None, str]],
        Annotated[Generator[int, Any, str], "Both."],
    ):
        output = Output("tool", returns)
        assert output.result(gone).structured == whole
        assert output.schema is not None
        jsonschema.validate(whole, output.schema)
        with pytest.raises(ToolFailedError, match="wrong type"):
            output.result(Collected([1], None))
    assert Output("tool", NOTHING).result(gone).structured == whole
    assert Output("tool", NOTHING).result(Collected([1])).structured == {"result": [1]}
    with pytest.raises(ToolFailedError, match=r"besides what it yields.*make it Generator"):
        Output("tool", Iterator[int]).result(gone)


def test_a_result_of_which_a_name_is_not_defined_has_no_schema_and_is_sent() -> None:
    @dataclass
    class Loose:
        other: Missing  # type: ignore[name-defined]  # noqa: F821  # the shape

    output = Output("tool", Loose)
    assert output.schema is None
    assert output.result(Loose(1)).structured == {"other": 1}
