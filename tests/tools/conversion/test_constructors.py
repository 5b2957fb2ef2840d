"""Classes as tools: what makes an instance, and what is said of its fields."""

from __future__ import annotations

import enum
from dataclasses import InitVar, dataclass, field
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

import pydantic.dataclasses
import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel, model_validator

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Base:
    """A base.

    Attributes:
        start: Where it starts.
    """

    start: int


@dataclass
class Span(Base):
    """A span.

    Attributes:
        end: Where it ends.
    """

    end: int = 9
    tags: list[str] = field(default_factory=list)
    shift: InitVar[int] = 0
    size: int = field(default=0, init=False)
    step: int = field(default=1, kw_only=True)

    def __post_init__(self, shift: int) -> None:
        self.size = self.end - self.start + shift


class Order(BaseModel):
    """An order."""

    count: int = Field(ge=1, description="How many.")
    sender: str = Field(alias="from")
    lines: list[int] = Field(default_factory=list)
    note: str | None = None
    kind: str = Field("x", validation_alias=AliasChoices("type", "sort"))

    @model_validator(mode="after")
    def _affordable(self) -> Order:
        if self.count > 100:
            raise ValueError("count is more than there are")
        return self


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", alias_generator=lambda name: f"x-{name}")

    a: int


class Numbers(RootModel[list[int]]):
    pass


@pydantic.dataclasses.dataclass
class Checked:
    a: int = Field(5, ge=1)
    b: str = "x"


class Point(NamedTuple):
    x: int
    y: int = 2


class Movie(TypedDict, total=False):
    title: str


class Plain:
    """Plain."""

    def __init__(self, x: int, other: int | None = None) -> None:
        """Makes one.

        Args:
            x: The x.
        """
        self.x = x
        self.other = other


class OnlyNew:
    def __new__(cls, x: int) -> OnlyNew:  # noqa: PYI034  # the name is found at run time
        made = super().__new__(cls)
        made.__dict__["x"] = x
        return made


class Empty:
    pass


@dataclass
class Box(Generic[T]):
    item: T


class GenericBox(BaseModel, Generic[T]):
    item: T


INTEGER = {"type": "integer"}
CLASSES: dict[str, tuple[Any, dict[str, Any], list[str], dict[str, Any]]] = {
    "dataclass": (
        Span,
        {
            "start": {**INTEGER, "description": "Where it starts."},
            "end": {**INTEGER, "default": 9, "description": "Where it ends."},
            "tags": {"type": "array", "items": {"type": "string"}},
            "shift": {**INTEGER, "default": 0},
            "step": {**INTEGER, "default": 1},
        },
        ["start"],
        {"start": 1, "shift": 2},
    ),
    "model": (
        Order,
        {
            "count": {**INTEGER, "minimum": 1, "description": "How many."},
            "from": {"type": "string"},
            "lines": {"type": "array", "items": INTEGER},
            "note": {"type": "string"},
            "type": {"type": "string", "default": "x"},
        },
        ["count", "from"],
        {"count": 1, "from": "a", "type": "y"},
    ),
    "open model": (Open, {"x-a": INTEGER}, ["x-a"], {"x-a": 1, "more": 2}),
    "root model": (Numbers, {"root": {"type": "array", "items": INTEGER}}, ["root"], {"root": [1]}),
    "generic model": (GenericBox[int], {"item": INTEGER}, ["item"], {"item": 1}),
    "pydantic dataclass": (
        Checked,
        {"a": {**INTEGER, "minimum": 1, "default": 5}, "b": {"type": "string", "default": "x"}},
        [],
        {"a": 2},
    ),
    "named tuple": (Point, {"x": INTEGER, "y": {**INTEGER, "default": 2}}, ["x"], {"x": 1}),
    "typed dict": (Movie, {"title": {"type": "string"}}, [], {"title": "a"}),
    "enum": (Colour, {"value": {"$ref": "#/$defs/Colour"}}, ["value"], {"value": "red"}),
    "only __new__": (OnlyNew, {"x": INTEGER}, ["x"], {"x": 1}),
    "nothing": (Empty, {}, [], {}),
    "generic dataclass": (Box[int], {"item": INTEGER}, ["item"], {"item": 1}),
}


@pytest.mark.parametrize("case", CLASSES.values(), ids=CLASSES)
def test_a_class_takes_what_makes_an_instance(case: Any) -> None:
    cls, properties, required, _ = case
    schema = FunctionToMCP.convert(cls).input_schema
    assert schema["properties"] == properties
    assert schema.get("required", []) == required


@pytest.mark.parametrize(
    ("cls", "raw", "structured"),
    [
        (Span, {"start": 1, "shift": 2}, {"start": 1, "end": 9, "tags": [], "size": 10, "step": 1}),
        (Open, {"x-a": 1, "more": 2}, {"x-a": 1, "more": 2}),
        (Numbers, {"root": [1]}, {"result": [1]}),
        (GenericBox[int], {"item": 1}, {"item": 1}),
        (Box[int], {"item": 1}, {"item": 1}),
        (Checked, {"a": 2}, {"a": 2, "b": "x"}),
        (Movie, {"title": "a"}, {"title": "a"}),
        (Colour, {"value": "red"}, {"result": "red"}),
    ],
)
async def test_a_call_makes_an_instance(
    cls: Any, raw: dict[str, Any], structured: dict[str, Any]
) -> None:
    spec = FunctionToMCP.convert(cls)
    result = await spec.invoke(spec.validate(raw), RequestContext())
    assert result.structured == structured


async def test_fields_that_do_not_fit_together_are_the_callers() -> None:
    spec = FunctionToMCP.convert(Order)
    with pytest.raises(InvalidArgumentsError, match="count is more than there are"):
        await spec.invoke(spec.validate({"count": 101, "from": "a"}), RequestContext())


def test_the_texts_of_a_class_are_its_own_and_its_makers() -> None:
    spec = FunctionToMCP.convert(Plain)
    assert (spec.name, spec.description) == ("plain", "Plain.")
    assert spec.input_schema["properties"]["x"]["description"] == "The x."


@pytest.mark.parametrize("cls", [Point, Colour, Box[int], Empty, Numbers, Movie])
def test_what_python_writes_is_no_description(cls: Any) -> None:
    assert FunctionToMCP.convert(cls).description == ""


@pytest.mark.parametrize(
    ("cls", "name"), [(OnlyNew, "only_new"), (GenericBox[int], "generic_box"), (Box[int], "box")]
)
def test_a_class_is_named_by_its_words(cls: Any, name: str) -> None:
    assert FunctionToMCP.convert(cls).name == name
