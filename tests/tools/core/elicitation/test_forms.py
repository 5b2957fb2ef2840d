"""Forms of types: what a person is shown, and the values that their answers become."""

import typing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum, auto
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import BaseModel, Field, SecretStr

from tools.core.elicitation.forms import FormOf
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError


class Bed(Enum):
    By_the_wall = "bed-1"
    By_the_pond = "bed-2"


class Colour(StrEnum):
    RED = auto()
    DARK_BLUE = "dark-blue"


class Rows(IntEnum):
    one = 1
    two = 2


class Order(BaseModel):
    name: str = Field("Ann", min_length=1, max_length=40, description="Whose order")
    beds: int = Field(gt=0, le=9)
    price: Decimal = Field(Decimal(2), ge=0)
    day: date
    sure: bool = True
    note: str | None = None
    gift: int | None


def fields(kind: Any) -> dict[str, Any]:
    shown: dict[str, Any] = FormOf(kind).schema["properties"]
    return shown


def test_a_model_is_a_form_with_bounds_defaults_and_texts() -> None:
    form = FormOf(Order)
    assert form.schema["required"] == ["beds", "day"]
    assert fields(Order) == {
        "name": {
            "type": "string",
            "title": "Name",
            "description": "Whose order",
            "minLength": 1,
            "maxLength": 40,
            "default": "Ann",
        },
        "beds": {"type": "integer", "title": "Beds", "minimum": 1, "maximum": 9},
        "price": {"type": "number", "title": "Price", "minimum": 0, "default": 2.0},
        "day": {"type": "string", "title": "Day", "format": "date"},
        "sure": {"type": "boolean", "title": "Sure", "default": True},
        "note": {"type": "string", "title": "Note"},
        "gift": {"type": "integer", "title": "Gift"},
    }


def test_what_is_left_empty_has_its_default_or_is_none() -> None:
    order = FormOf(Order).value({"beds": 2, "day": "2026-03-01", "name": None})
    assert order == Order(beds=2, day=date(2026, 3, 1), gift=None)


@pytest.mark.parametrize(
    ("kind", "field", "answer", "value"),
    [
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
        (Literal[1, 2], {"type": "string", "enum": ["1", "2"]}, "2", 2),
        (Literal["only"], {"type": "string", "enum": ["only"]}, "only", "only"),
        (
            Bed,
            {
                "type": "string",
                "oneOf": [
                    {"const": "bed-1", "title": "By the wall"},
                    {"const": "bed-2", "title": "By the pond"},
                ],
            },
            "bed-2",
            Bed.By_the_pond,
        ),
        (Colour, {"type": "string", "enum": ["red", "dark-blue"]}, "red", Colour.RED),
        (
            Rows,
            {
                "type": "string",
                "oneOf": [{"const": "1", "title": "one"}, {"const": "2", "title": "two"}],
            },
            "1",
            Rows.one,
        ),
        (
            set[Bed],
            {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"const": "bed-1", "title": "By the wall"},
                        {"const": "bed-2", "title": "By the pond"},
                    ]
                },
            },
            ["bed-2"],
            {Bed.By_the_pond},
        ),
        (
            list[Literal["a", "b"]],
            {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            ["b", "a"],
            ["b", "a"],
        ),
        (
            Annotated[Literal["a", "b"], Field(json_schema_extra={"enumNames": ["A.", "B."]})],
            {"type": "string", "enum": ["a", "b"], "enumNames": ["A.", "B."]},
            "a",
            "a",
        ),
        (bool, {"type": "boolean"}, False, False),
        (str, {"type": "string"}, "", ""),
    ],
)
def test_one_value_is_asked_for_by_one_field(
    kind: Any, field: dict[str, Any], answer: Any, value: Any
) -> None:
    form = FormOf(kind)
    assert form.schema == {
        "type": "object",
        "properties": {"answer": {**field, "title": "Your answer"}},
        "required": ["answer"],
    }
    assert form.value({"answer": answer}) == value


def test_a_default_is_shown_as_the_choice_that_it_is() -> None:
    class Plan(BaseModel):
        rows: Rows = Rows.two
        beds: list[Bed] = [Bed.By_the_wall]

    assert fields(Plan)["rows"]["default"] == "2"
    assert fields(Plan)["beds"]["default"] == ["bed-1"]


def test_dataclasses_and_both_kinds_of_typed_dict_are_forms() -> None:
    @dataclass
    class Sized:
        wide: int
        long: int = 3

    class Older(typing.TypedDict):
        wide: int
        long: NotRequired[int]

    assert FormOf(Sized).value({"wide": 2}) == Sized(2)
    assert FormOf(Older).value({"wide": 2}) == {"wide": 2}
    assert FormOf(Older).schema["required"] == ["wide"]


def test_an_empty_answer_is_none_where_something_has_to_be_said() -> None:
    assert not FormOf(bool).is_answered({})
    assert FormOf(bool).is_answered({"answer": False})
    assert FormOf(int | None).is_answered({})  # type: ignore[arg-type]  # a union is no class


def test_a_wrong_answer_says_where_it_does_not_fit() -> None:
    with pytest.raises(InvalidArgumentsError, match="beds: Input should be less than or equal"):
        FormOf(Order).value({"beds": 10, "day": "2026-03-01"})
    with pytest.raises(InvalidArgumentsError, match="answer: Input should be 'bed-1' or 'bed-2'"):
        FormOf(Bed).value({"answer": "By_the_wall"})


class Nested(BaseModel):
    order: Order


class Hidden(BaseModel):
    word: SecretStr


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Nested, "Nested.order: it is not a plain value"),
        (Hidden, "Hidden.word: a form must not ask for a secret"),
        (list[str], "list: a list can only be some of several choices"),
        (dict[str, int], "dict: it is not a plain value"),
        (int | str, "it may be of several types"),
        (object, "object: it has no type"),
        (BaseModel, "BaseModel: it has no fields"),
        (type("Odd", (), {}), "Odd: "),
    ],
)
def test_what_no_form_can_ask_for_is_refused_with_the_field_and_what_to_do(
    kind: Any, why: str
) -> None:
    with pytest.raises(ToolDefinitionError) as refused:
        FormOf(kind)
    assert str(refused.value).startswith("No form can ask for ")
    assert why in str(refused.value)
    assert "Literal, Enum" in str(refused.value)
