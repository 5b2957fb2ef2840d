"""What is said of arguments that do not fit: of unions, of names, of what stands deep inside."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, HttpUrl, Json, Tag
from pydantic_core import PydanticCustomError

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import InvalidArgumentsError


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["dog"]
    bark: str
    tricks: list[str] = Field(default_factory=list)


class Circle(BaseModel):
    radius: float


class Square(BaseModel):
    side: float


class Drawing(BaseModel):
    shapes: list[Circle | Square | int]


class Tree(BaseModel):
    value: int
    children: list[Tree] = Field(default_factory=list)


def _even(number: int) -> int:
    if number % 2:
        raise PydanticCustomError("odd", "{number} is odd", {"number": number})
    return number


PETS = "an object with `kind`, `lives`, or an object with `kind`, `bark`, `tricks`"
SHAPES = "an object with `radius` or an object with `side`"
Sided = Annotated[
    Annotated[Circle, Tag("round")] | Annotated[Square, Tag("square")],
    Discriminator(lambda value: "square" if "side" in value else "round"),
]
Tagged = Annotated[Cat | Dog, Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("annotation", "sent", "lines"),
    [
        (Cat | Dog, {"kind": "cat"}, ["`x.lives` is missing; add an integer."]),
        (Cat | Dog, 5, [f"`x` is 5; send {PETS}."]),
        (int | list[int] | Cat, ["z"], ["`x[0]` is 'z'; send an integer."]),
        (dict[str, list[int]] | int, {"int": ["z"]}, ["`x.int[0]` is 'z'; send an integer."]),
        (
            Annotated[int, Field(ge=1)] | str,
            0,
            ["`x` is 0; send an integer of at least 1 or a string."],
        ),
        (Circle | Square, {}, [f"`x` fits nothing; send {SHAPES}."]),
        (
            Drawing,
            {"shapes": [{"radius": "big"}, "z"]},
            [
                "`x.shapes[0].radius` is 'big'; send a number.",
                f"`x.shapes[1]` is 'z'; send {SHAPES} or an integer.",
            ],
        ),
        (
            Tagged,
            {"kind": "dig"},
            ["`x.kind` is 'dig'; send one of 'cat', 'dog' (did you mean 'dog'?)."],
        ),
        (Tagged, {"lives": 1}, ["`x.kind` is missing; add one of 'cat', 'dog'."]),
        (Tagged, {"kind": "dog", "bark": 1}, ["`x.bark` is 1; send a string."]),
        (
            Tagged,
            {"kind": "dog", "bark": "a", "trick": []},
            ["`x.trick` is unknown; did you mean `x.tricks`?"],
        ),
        (Tagged, "cat", [f"`x` is 'cat'; send {PETS}."]),
        (Sided, {"side": "z"}, ["`x.side` is 'z'; send a number."]),
        (Json[list[int]], '["z"]', ["`x[0]` is 'z'; send an integer."]),
        (
            Annotated[set[int], Field(min_length=2)],
            [1, 1],
            ["`x` is [1, 1]; send a list of at least 2 different items, each item an integer."],
        ),
        (Decimal, "NaN", ["`x` is 'NaN'; Input should be a finite number"]),
        (HttpUrl, "ftp://a.b", ["`x` is 'ftp://a.b'; URL scheme should be 'http' or 'https'"]),
        (
            Tree,
            {"value": 1, "children": [{"value": 2, "children": [{"value": "z"}]}]},
            ["`x.children[0].children[0].value` is 'z'; send an integer."],
        ),
        (Annotated[int, AfterValidator(_even)], 3, ["`x` is 3; 3 is odd"]),
    ],
)
def test_a_complaint_names_the_place_the_value_and_the_remedy(
    annotation: Any, sent: Any, lines: list[str], taking: Callable[[Any], Any]
) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        FunctionToMCP.convert(taking(annotation)).validate({"x": sent})
    assert caught.value.message.splitlines()[1:] == [f"- {line}" for line in lines]


def test_null_for_what_has_a_default_inside_an_object_is_that_default(
    taking: Callable[[Any], Any],
) -> None:
    values = FunctionToMCP.convert(taking(Tree)).validate({"x": {"value": 1, "children": None}})
    assert values["x"] == Tree(value=1)


def test_the_json_of_an_object_is_read_inside_an_object_too(taking: Callable[[Any], Any]) -> None:
    sent = {"x": '{"value": "1", "children": "[{\\"value\\": 2.0}]"}'}
    values = FunctionToMCP.convert(taking(Tree)).validate(sent)
    assert values["x"] == Tree(value=1, children=[Tree(value=2)])
