"""Choices: one of several values or types, and null where it is a value."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, Optional, Union

from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType, TypedDict

from benchmarks.function_shapes.checks import (
    allows,
    answers,
    gets,
    optional,
    property_has,
    refuses,
    required,
    types,
)
from benchmarks.function_shapes.shape import Theme, show
from benchmarks.function_shapes.subjects import Level

Function = Callable[..., Any]

CHOICES = Theme("types")


class Colour(enum.Enum):
    """Values that differ from the names."""

    RED = "#f00"
    BLUE = "#00f"


class Mixed(enum.Enum):
    """Values of several types."""

    ONE = 1
    TWO = "two"


@CHOICES.shape(
    "Optional with the default None",
    optional("a", "b", "c", "d"),
    types("a", "integer"),
    allows("b", "x", "y"),
    allows("c", "#f00", "#00f"),
    types("d", "array"),
    gets({}, "None None None None"),
    gets({"a": 1, "b": "x", "c": "#f00", "d": ["t"]}, "1 x Colour.RED ['t']"),
    refuses({"b": "z"}, "b"),
)
def optionals(
    a: Optional[int] = None,  # noqa: UP045  # the older spelling is part of the shape
    b: Literal["x", "y"] | None = None,
    c: Colour | None = None,
    d: list[str] | None = None,
) -> str:
    return f"{a} {b} {c} {d}"


@CHOICES.shape(
    "a Union",
    types("value", "integer", "string"),
    gets({"value": 5}, "int 5"),
    gets({"value": "5"}, "str 5"),
    refuses({"value": [1]}, "value"),
)
def union(value: Union[int, str]) -> str:  # noqa: UP007  # the older spelling is the shape
    return show(value)


@CHOICES.shape(
    "a Union with None",
    types("value", "integer", "array"),
    gets({}, "NoneType None"),
    gets({"value": [1]}, "list [1]"),
)
def union_with_none(value: int | list[int] | None = None) -> str:
    return show(value)


@CHOICES.shape(
    "Literal",
    allows("mode", "fast", "slow", 3),
    gets({"mode": "fast"}, "str fast"),
    gets({"mode": 3}, "int 3"),
    refuses({"mode": "medium"}, "mode", "fast", "slow"),
)
def literal(mode: Literal["fast", "slow", 3]) -> str:
    return show(mode)


@CHOICES.shape(
    "Enum",
    allows("colour", "#f00", "#00f"),
    gets({"colour": "#00f"}, "Colour Colour.BLUE"),
    refuses({"colour": "green"}, "colour", "#f00"),
)
def enumeration(colour: Colour) -> str:
    return show(colour)


@CHOICES.shape(
    "Enum with a default",
    optional("colour"),
    property_has("colour", default="#f00"),
    gets({}, "Colour Colour.RED"),
)
def enumeration_default(colour: Colour = Colour.RED) -> str:
    return show(colour)


@CHOICES.shape(
    "IntEnum", allows("level", 1, 2), gets({"level": 2}, "Level"), refuses({"level": 3}, "level")
)
def int_enumeration(level: Level) -> str:
    return type(level).__name__


@CHOICES.shape(
    "Enum of several types",
    allows("which", 1, "two"),
    gets({"which": 1}, "Mixed Mixed.ONE"),
    gets({"which": "two"}, "Mixed Mixed.TWO"),
)
def mixed_enumeration(which: Mixed) -> str:
    return show(which)


@CHOICES.shape(
    "`x: int = None`",
    optional("x"),
    types("x", "integer"),
    gets({}, "NoneType None"),
    gets({"x": 1}, "int 1"),
    answers(lambda value: value == "NoneType None", {"x": None}, valid=False),
)
def implicit_optional(x: int = None) -> str:  # type: ignore[assignment]  # noqa: RUF013  # the shape
    return show(x)


@CHOICES.shape(
    "bool or a word",
    gets({"colour": True}, "bool True"),
    gets({"colour": "auto"}, "str auto"),
    refuses({"colour": "sometimes"}, "colour", "auto"),
)
def bool_or_literal(colour: bool | Literal["auto"] = "auto") -> str:
    return show(colour)


@CHOICES.shape(
    "int or float", gets({"size": 5}, "int 5"), gets({"size": 5.5}, "float 5.5"), optional("size")
)
def int_or_float(size: int | float = 1) -> str:  # noqa: PYI041  # the shape
    return show(size)


@CHOICES.shape(
    "bounds inside a list and an option",
    refuses({"sizes": [1, 0]}, "sizes"),
    refuses({"sizes": [1], "limit": 101}, "limit", "100"),
    property_has("limit", maximum=100),
    gets({"sizes": [1], "limit": 100}, "[1] 100"),
)
def inner_bounds(
    sizes: list[Annotated[int, Field(ge=1)]], limit: Annotated[int, Field(le=100)] | None = None
) -> str:
    return f"{sizes} {limit}"


Maybe = TypeAliasType("Maybe", "list[Maybe] | int | None")


class Errand(BaseModel):
    """What is to be done, by when if at all."""

    what: str
    due: date | None
    note: str | None = None


@dataclass
class Reading:
    """What a thermometer said, if anything."""

    celsius: float | None


class Change(TypedDict):
    """What is to be different; a name that is left out stays as it is."""

    name: str
    phone: NotRequired[str | None]


class Chain(BaseModel):
    """A link, and the next one or the end."""

    link: int
    next: "Chain | None"


@CHOICES.shape(
    "Optional without a default",
    required("number"),
    gets({"number": 5}, "int 5"),
    gets({"number": None}, "NoneType None"),
    refuses({}, "number"),
    refuses({"number": "x"}, "number"),
)
def optional_required(number: int | None) -> str:
    return show(number)


@CHOICES.shape("null for an Optional", gets({"number": None}, "NoneType None", valid=False))
def null_given(number: int | None = None) -> str:
    return show(number)


@CHOICES.shape(
    "Optional with another default than None",
    optional("limit"),
    gets({}, "int 5"),
    gets({"limit": None}, "NoneType None"),
)
def nullable_default(limit: int | None = 5) -> str:
    return show(limit)


@CHOICES.shape("items that may be null", gets({"rows": [1, None]}, "[1, None]"))
def null_items(rows: list[int | None]) -> str:
    return str(rows)


@CHOICES.shape(
    "values that may be null", gets({"ages": {"a": None, "b": 1}}, "{'a': None, 'b': 1}")
)
def null_values(ages: dict[str, int | None]) -> str:
    return str(ages)


@CHOICES.shape(
    "values and items that may not be null",
    refuses({"ages": {"a": None}, "rows": []}, "ages"),
    refuses({"ages": {}, "rows": [None]}, "rows"),
    gets({"ages": {"a": 1}, "rows": [2]}, "{'a': 1} [2]"),
)
def no_null_values(ages: dict[str, int], rows: list[int]) -> str:
    return f"{ages} {rows}"


@CHOICES.shape(
    "a part of a tuple that may be null",
    gets({"span": ["a", None]}, "('a', None)"),
    gets({"span": ["a", 2]}, "('a', 2)"),
)
def null_in_tuple(span: tuple[str, int | None]) -> str:
    return str(span)


@CHOICES.shape(
    "a model's field that may be null, without a default",
    gets({"errand": {"what": "w", "due": None}}, "w None None"),
    gets({"errand": {"what": "w", "due": "2026-03-31", "note": "n"}}, "w 2026-03-31 n"),
    refuses({"errand": {"what": "w"}}, "due"),
    refuses({"errand": {"what": "w", "due": "soon"}}, "due"),
)
def null_field(errand: Errand) -> str:
    return f"{errand.what} {errand.due} {errand.note}"


@CHOICES.shape(
    "a dataclass's field that may be null, without a default",
    gets({"readings": [{"celsius": None}, {"celsius": 1.5}]}, "[None, 1.5]"),
    refuses({"readings": [{}]}, "celsius"),
)
def null_in_dataclass(readings: list[Reading]) -> str:
    return str([each.celsius for each in readings])


@CHOICES.shape_made(
    "a TypedDict's name that may be left out or null",
    gets({"change": {"name": "n"}}, "{'name': 'n'}"),
    gets({"change": {"name": "n", "phone": None}}, "{'name': 'n', 'phone': None}"),
)
def null_in_typed_dict() -> Function:
    def change(change: Change) -> str:
        return str(change)

    return change


@CHOICES.shape(
    "a recursive model that ends with null",
    gets({"chain": {"link": 1, "next": {"link": 2, "next": None}}}, "1 2 None"),
    refuses({"chain": {"link": 1, "next": {"link": 2}}}, "next"),
)
def null_in_recursion(chain: Chain) -> str:
    return f"{chain.link} {chain.next and chain.next.link} {chain.next and chain.next.next}"


@CHOICES.shape(
    "null in a recursive type alias",
    gets({"nested": [1, None, [None]]}, "[1, None, [None]]"),
    gets({"nested": None}, "None"),
    refuses({"nested": ["x"]}, "nested"),
)
def null_in_alias(nested: Maybe) -> str:
    return str(nested)
