"""Types of parameters: the schema, what is accepted and reaches the function, what is refused."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import ipaddress
import pathlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, LiteralString, Self, TextIO, Union

import annotated_types
import attrs
import numpy as np
import numpy.typing as npt
import pytest
from pydantic import (
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    SecretStr,
)
from typing_extensions import Doc, TypeAliasType

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Even(int):
    def __new__(cls, value: int) -> Self:
        if value % 2:
            raise ValueError("it is odd")
        return super().__new__(cls, value)


class Right(enum.IntFlag):
    READ = 1
    WRITE = 2


class Planet(enum.Enum):
    EARTH = (5.97, 6.37)
    MARS = (0.64, 3.39)


class Marked(BaseModel):
    colour: Literal[Colour.RED]


@attrs.define
class Line:
    text: str


@attrs.define
class Order:
    number: int = attrs.field(validator=attrs.validators.gt(0))
    lines: list[Line] = attrs.field(factory=list)


@attrs.define
class Node:
    children: list[Node]


@dataclass
class Errand:
    due: str | None
    after: Errand | None
    note: str | None = None
    priority: int | None = 3


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: dt.date
    pair: tuple[int, int]
    colour: Colour


Key = Annotated[str, Field(pattern="^a")]
Nested = TypeAliasType("Nested", "list[Nested] | int")
Count = TypeAliasType("Count", Annotated[int, Field(ge=1), "How many."])

INTEGER = {"type": "integer"}
INTEGERS = {"type": "array", "items": INTEGER}

TYPES: dict[str, Any] = {
    "int": (
        int,
        INTEGER,
        [(1, 1), ("5", 5), (5.0, 5), (2.0**70, 2**70), (10**30, 10**30)],
        "1.5",
        "is '1.5'; send an integer.",
    ),
    "none": (None, {"type": "null"}, [(None, None)], 0, "is 0; send null."),
    "fields that may be null": (
        Errand,
        {
            "type": "object",
            "properties": {
                "due": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "note": {"type": "string"},
                "priority": {"anyOf": [INTEGER, {"type": "null"}], "default": 3},
                "after": {"anyOf": [{"$ref": "#/$defs/Errand"}, {"type": "null"}]},
            },
            "required": ["due", "after"],
        },
        [
            ({"due": None, "after": None}, Errand(due=None, after=None)),
            (
                {"due": "x", "after": {"due": None, "after": None}},
                Errand(due="x", after=Errand(due=None, after=None)),
            ),
            (
                {"due": None, "note": None, "priority": None, "after": None},
                Errand(due=None, note=None, priority=None, after=None),
            ),
        ],
        {"due": "x", "after": {"due": 5, "after": None}},
        "`x.after.due` is 5; send a string or null.",
    ),
    "literal of kinds": (
        Literal["a", 1, True, Colour.RED],
        {"enum": ["a", 1, True, "red"]},
        [(1, 1), (True, True), ("red", Colour.RED)],
        0,
        "is 0; send one of 'a', 1, True, 'red'.",
    ),
    "none in brackets": (
        dict[str, None],
        {"type": "object", "additionalProperties": {"type": "null"}},
        [({"a": None}, {"a": None})],
        {"a": 1},
        "`x.a` is 1; send null.",
    ),
    "literal true": (Literal[True], {"enum": [True], "type": "boolean"}, [(True, True)], 1, "is 1"),
    "enum by name": (
        Planet,
        {"enum": ["EARTH", "MARS"], "type": "string"},
        [("MARS", Planet.MARS)],
        "PLUTO",
        "send one of 'EARTH', 'MARS'.",
    ),
    "int with a check": (Even, INTEGER, [(2, Even(2))], 3, "it is odd"),
    "int8": (np.int8, INTEGER, [(5, np.int8(5))], 300, "out of bounds"),
    "any floating": (np.floating, {"type": "number"}, [(5, 5.0)], "x", "send a number."),
    "attrs": (
        Order,
        {
            "type": "object",
            "properties": {
                "number": INTEGER,
                "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
            },
            "required": ["number"],
        },
        [({"number": 1, "lines": [{"text": "a"}]}, Order(1, [Line("a")]))],
        {"number": 0},
        "'number' must be > 0",
    ),
    "defaultdict": (
        collections.defaultdict[str, int],
        {"type": "object", "additionalProperties": INTEGER},
        [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1})],
        1,
        "send an object.",
    ),
    "flag": (
        Right,
        {
            "type": "integer",
            "minimum": 0,
            "maximum": 3,
            "description": "A sum of 1 (READ), 2 (WRITE).",
        },
        [(3, Right.READ | Right.WRITE), (0, Right(0))],
        4,
        "is 4; send an integer from 0 to 3.",
    ),
    "bytearray": (
        bytearray,
        {"type": "string", "contentMediaType": "text/plain; charset=utf-8"},
        [("a", bytearray(b"a"))],
        1,
        "send a string.",
    ),
    "decimal": (
        Annotated[Decimal, Field(ge=1, decimal_places=2)],
        {
            "anyOf": [
                {"type": "number", "minimum": 1},
                {"type": "string", "pattern": "^[0-9]+([.][0-9]{1,2})?$"},
            ]
        },
        [(1.5, Decimal("1.5")), ("1.50", Decimal("1.50")), (2, Decimal(2))],
        1.234,
        "no more than 2 decimal places",
    ),
    "decimal as text": (
        Decimal | None,
        {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "pattern": "^-?[0-9]+([.][0-9]+)?$"},
                {"type": "null"},
            ]
        },
        [
            ("-0.10", Decimal("-0.10")),
            ("0.1000000000000000000001", Decimal("0.1000000000000000000001")),
            ("1E+5", Decimal("1E+5")),
            (None, None),
        ],
        True,
        "`x` is True; send a number or a string matching ^-?[0-9]+([.][0-9]+)?$ or null.",
    ),
    "whole decimal": (
        Annotated[Decimal, Field(gt=0, decimal_places=0)],
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": "^[0-9]+$"},
            ]
        },
        [("5", Decimal(5))],
        "0",
        "`x` is '0'; Input should be greater than 0",
    ),
    "fraction": (
        Fraction,
        {"anyOf": [{"type": "number"}, {"type": "string", "format": "fraction"}]},
        [("1/2", Fraction(1, 2))],
        "x",
        "send a number or a string (fraction).",
    ),
    "aware": (
        AwareDatetime,
        {"type": "string", "format": "date-time"},
        [("2026-01-01T00:00:00Z", dt.datetime(2026, 1, 1, tzinfo=dt.UTC))],
        "2026-01-01T00:00:00",
        "should have timezone info",
    ),
    "secret": (
        SecretStr,
        {"type": "string", "format": "password", "writeOnly": True},
        [("a", SecretStr("a"))],
        1,
        "send a string (password).",
    ),
    "json": (
        Json[list[int]],
        {"type": "string", "contentMediaType": "application/json", "contentSchema": INTEGERS},
        [("[1]", [1])],
        "[",
        "send JSON as text.",
    ),
    "literal string": (LiteralString, {"type": "string"}, [("a", "a")], 1, "send a string."),
    "described alias": (
        Count,
        {**INTEGER, "minimum": 1, "description": "How many."},
        [(1, 1)],
        0,
        "send an integer of at least 1.",
    ),
    "described items": (
        dict[str, Annotated[int, Doc("How many.")]],
        {"type": "object", "additionalProperties": {"type": "integer", "description": "How many."}},
        [({"a": 1}, {"a": 1})],
        {"a": "b"},
        "`x.a` is 'b'",
    ),
    "strict": (Annotated[int, Field(strict=True)], INTEGER, [(1, 1)], "1", "send an integer."),
    "before": (
        Annotated[list[str], BeforeValidator(lambda text: text.split(","))],
        {"type": "array", "items": {"type": "string"}},
        [("a,b", ["a", "b"])],
        ...,
        "is missing; add a list, each item a string.",
    ),
}


@pytest.mark.parametrize("case", TYPES.values(), ids=TYPES)
def test_a_type_has_its_schema_and_takes_and_refuses_what_it_says(
    case: Any, examine: Callable[[Any], None]
) -> None:
    examine(case)


COMPLAINTS: list[tuple[Any, Any, str]] = [
    (bool, "perhaps", "is 'perhaps'; send true or false."),
    (float, True, "send a number."),
    (float, "-Infinity", "should be a finite number"),
    (None, 0, "is 0; send null."),
    (int | None, "x", "send an integer or null."),
    (int | list[str], {}, "is {}; send an integer or a list, each item a string."),
    (dict[str, int | None], {"a": "x"}, "`x.a` is 'x'; send an integer or null."),
    (tuple[str, dt.date | None], ["a", "b"], "`x[1]` is 'b'; send a date such as '2026-03-31' or"),
    (Literal["a", None], "b", "send one of 'a', null."),  # noqa: PYI061  # the shape
    (Colour, "blu", "send one of 'red', 'blue' (did you mean 'blue'?)."),
    (dict[Level, int], {"3": 5}, "`x` has the name '3'; send one of '1', '2'."),
    (dict[Key, int], {"b": 1}, "`x` has the name 'b'; send a string matching ^a."),
    (Base64Bytes, 5, "send a string (base64)."),
    (dt.datetime, "soon", "send a date and time such as '2026-03-31T12:00:00Z'."),
    (dt.time, "noon", "send a time such as '12:00:00'."),
    (dt.timedelta, "long", "send a duration such as 'PT1H30M'."),
    (pathlib.Path, 1, "send a string (path)."),
    (ipaddress.IPv4Address, "x", "send an IPv4 address such as '192.0.2.1'."),
    (re.Pattern[str], "(", "send a regular expression."),
    (
        Annotated[int, annotated_types.Interval(ge=1, lt=5)],
        5,
        "an integer of at least 1, less than",
    ),
    (Annotated[list[int], annotated_types.Len(1, 2)], [], "a list of 1 to 2 items, each item an"),
    (npt.NDArray[np.float64], [1, [2]], "sequence"),
    (Nested, "a", "send a list or an integer."),
]


@pytest.mark.parametrize(("annotation", "sent", "complaint"), COMPLAINTS)
def test_a_wrong_value_is_refused_with_what_its_type_takes(
    annotation: Any, sent: Any, complaint: str, taking: Callable[[Any], Any]
) -> None:
    with pytest.raises(InvalidArgumentsError, match=re.escape(complaint)):
        FunctionToMCP.convert(taking(annotation)).validate({"x": sent})


def test_a_default_is_shown_as_callers_could_send_it() -> None:
    def take(  # noqa: PLR0913, PLR0917  # one default a kind
        exact: Decimal = Decimal("1.50"),
        long: Decimal = Decimal("1.00000000000000000001"),
        endless: Decimal = Decimal("Infinity"),
        secret: SecretStr = SecretStr("x"),  # noqa: B008  # the shape
        wrong: int = "auto",  # type: ignore[assignment]  # the shape
        colour: Colour = Colour.RED,
        planet: Planet = Planet.EARTH,
        opaque: Any = threading,
        broken: bytes = b"\xff",
    ) -> None: ...

    spec = FunctionToMCP.convert(take)
    properties = spec.input_schema["properties"]
    shown = {name: part["default"] for name, part in properties.items() if "default" in part}
    assert shown == {"exact": "1.50", "long": "1.00000000000000000001", "colour": "red"}
    assert spec.validate({})["wrong"] == "auto"
    assert spec.validate({})["opaque"] is threading


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Callable[[int], int], "JSON has no value that becomes callable"),
        (type[int], "becomes int"),
        (TextIO, "becomes <class 'typing.TextIO'>"),
        (range, "becomes <class 'range'>"),
        (dict[tuple[int, int], str], "becomes a dict with keys of type tuple"),
        (Marked, "a Literal of Colour.RED inside a class, unless Colour inherits from str"),
        (Annotated[str, Field(ge=1)], "ge=1 does not apply to strings"),
        (list[Annotated[str, Field(lt=1)]], "lt=1 does not apply to strings"),
        (Annotated[int, Field(max_length=2)], "maxLength=2 does not apply to integers"),
        (Annotated[str, Field(pattern="(?=a)")], "look-around"),
        (Annotated[str, Field(pattern="(")], "unclosed group"),
    ],
)
def test_a_type_that_no_json_becomes_is_refused_with_the_reason(
    annotation: Any, reason: str, taking: Callable[[Any], Any]
) -> None:
    with pytest.raises(ToolDefinitionError, match=re.escape(reason)):
        FunctionToMCP.convert(taking(annotation))


Recursive: Any = Union[dict[str, "Recursive"], int]  # type: ignore[misc]  # noqa: UP007  # the shape


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Annotated[int, Field(max_length=2)], "does not apply to integers"),
        (Recursive, "the name 'Recursive' in its type cannot be found; import or define"),
    ],
)
def test_a_default_hides_no_mistake_in_a_type(annotation: Any, reason: str) -> None:
    def take(x=1):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # annotated below
        return x

    take.__annotations__ = {"x": annotation}
    with pytest.raises(ToolDefinitionError, match=reason):
        FunctionToMCP.convert(take)


def test_a_class_of_attrs_that_refers_to_itself_is_refused(taking: Callable[[Any], Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="Node of attrs refers to itself"):
        FunctionToMCP.convert(taking(Node))


def test_strict_types_are_read_as_json_has_them(taking: Callable[[Any], Any]) -> None:
    raw = {"day": "2026-01-01", "pair": [1, 2], "colour": "red"}
    values = FunctionToMCP.convert(taking(Strict)).validate({"x": raw})
    assert values["x"] == Strict(day=dt.date(2026, 1, 1), pair=(1, 2), colour=Colour.RED)
