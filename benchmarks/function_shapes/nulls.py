"""Null where it is a value: what may be null is listed so, and null reaches the function."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any, NotRequired

from pydantic import BaseModel
from typing_extensions import TypeAliasType, TypedDict

from benchmarks.function_shapes.checks import gets, optional, refuses, required
from benchmarks.function_shapes.shape import Theme, show

__all__ = ["NULLS"]

Function = Callable[..., Any]
Maybe = TypeAliasType("Maybe", "list[Maybe] | int | None")

NULLS = Theme("types")


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


@NULLS.shape(
    "Optional without a default",
    required("number"),
    gets({"number": 5}, "int 5"),
    gets({"number": None}, "NoneType None"),
    refuses({}, "number"),
    refuses({"number": "x"}, "number"),
)
def optional_required(number: int | None) -> str:
    return show(number)


@NULLS.shape("null for an Optional", gets({"number": None}, "NoneType None", valid=False))
def null_given(number: int | None = None) -> str:
    return show(number)


@NULLS.shape(
    "Optional with another default than None",
    optional("limit"),
    gets({}, "int 5"),
    gets({"limit": None}, "NoneType None"),
)
def nullable_default(limit: int | None = 5) -> str:
    return show(limit)


@NULLS.shape("items that may be null", gets({"rows": [1, None]}, "[1, None]"))
def null_items(rows: list[int | None]) -> str:
    return str(rows)


@NULLS.shape("values that may be null", gets({"ages": {"a": None, "b": 1}}, "{'a': None, 'b': 1}"))
def null_values(ages: dict[str, int | None]) -> str:
    return str(ages)


@NULLS.shape(
    "values and items that may not be null",
    refuses({"ages": {"a": None}, "rows": []}, "ages"),
    refuses({"ages": {}, "rows": [None]}, "rows"),
    gets({"ages": {"a": 1}, "rows": [2]}, "{'a': 1} [2]"),
)
def no_null_values(ages: dict[str, int], rows: list[int]) -> str:
    return f"{ages} {rows}"


@NULLS.shape(
    "a part of a tuple that may be null",
    gets({"span": ["a", None]}, "('a', None)"),
    gets({"span": ["a", 2]}, "('a', 2)"),
)
def null_in_tuple(span: tuple[str, int | None]) -> str:
    return str(span)


@NULLS.shape(
    "a model's field that may be null, without a default",
    gets({"errand": {"what": "w", "due": None}}, "w None None"),
    gets({"errand": {"what": "w", "due": "2026-03-31", "note": "n"}}, "w 2026-03-31 n"),
    refuses({"errand": {"what": "w"}}, "due"),
    refuses({"errand": {"what": "w", "due": "soon"}}, "due"),
)
def null_field(errand: Errand) -> str:
    return f"{errand.what} {errand.due} {errand.note}"


@NULLS.shape(
    "a dataclass's field that may be null, without a default",
    gets({"readings": [{"celsius": None}, {"celsius": 1.5}]}, "[None, 1.5]"),
    refuses({"readings": [{}]}, "celsius"),
)
def null_in_dataclass(readings: list[Reading]) -> str:
    return str([each.celsius for each in readings])


@NULLS.shape_made(
    "a TypedDict's name that may be left out or null",
    gets({"change": {"name": "n"}}, "{'name': 'n'}"),
    gets({"change": {"name": "n", "phone": None}}, "{'name': 'n', 'phone': None}"),
)
def null_in_typed_dict() -> Function:
    def change(change: Change) -> str:
        return str(change)

    return change


@NULLS.shape(
    "a recursive model that ends with null",
    gets({"chain": {"link": 1, "next": {"link": 2, "next": None}}}, "1 2 None"),
    refuses({"chain": {"link": 1, "next": {"link": 2}}}, "next"),
)
def null_in_recursion(chain: Chain) -> str:
    return f"{chain.link} {chain.next and chain.next.link} {chain.next and chain.next.next}"


@NULLS.shape(
    "null in a recursive type alias",
    gets({"nested": [1, None, [None]]}, "[1, None, [None]]"),
    gets({"nested": None}, "None"),
    refuses({"nested": ["x"]}, "nested"),
)
def null_in_alias(nested: Maybe) -> str:
    return str(nested)
