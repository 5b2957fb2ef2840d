"""Types that are easily taken for others: names that mean something, and names that are shared."""

import dataclasses
import enum
import typing
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

import pydantic
from pydantic import BaseModel, Field, StrictInt

from benchmarks.function_shapes.checks import (
    allows,
    answers,
    gets,
    optional,
    property_has,
    refuses,
    required,
    takes,
    types,
)
from benchmarks.function_shapes.shape import Theme, show

Function = Callable[..., Any]

ItemT = TypeVar("ItemT")

PITFALLS = Theme("types")


class Keywords(BaseModel):
    """Its fields have the names of JSON Schema's keywords."""

    title: str
    type: Literal["null", "x"] = "x"
    default: int = 0
    properties: dict[str, int] = Field(default_factory=dict)
    required: bool = False
    anyOf: list[int] = Field(default_factory=list)  # noqa: N815  # the keyword
    ref: str = Field(default="", alias="$ref")


class Left(BaseModel):
    """Refers to the other."""

    right: "Right | None" = None


class Right(BaseModel):
    """Refers to the other."""

    lefts: list[Left] = Field(default_factory=list)


class Folder(typing.TypedDict):
    """Refers to itself."""

    name: str
    folders: "list[Folder]"


class Shade(enum.Enum):
    """Numbers that nobody chose."""

    LIGHT = enum.auto()
    DARK = enum.auto()


@dataclass
class Box(Generic[ItemT]):
    """Holds anything."""

    item: ItemT


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """Has fields of every kind."""

    size: int
    area: int = dataclasses.field(init=False, default=7)
    tags: tuple[str, ...] = ()


@dataclass
class Scaled:
    """Checks itself, with a value that it does not keep."""

    size: int
    factor: InitVar[int] = 1

    def __post_init__(self, factor: int) -> None:
        """Refuses what is too big."""
        if self.size * factor > 100:  # noqa: PLR2004  # any bound will do
            raise ValueError("size times factor is more than 100")
        self.size *= factor


@pydantic.dataclasses.dataclass
class Checked:
    """Pydantic's own dataclass."""

    size: int = Field(ge=1)


def item_of(kind: type) -> type[BaseModel]:
    """A class called Item, each time another."""

    class Item(BaseModel):
        value: kind  # type: ignore[valid-type]  # that is the point

    return Item


FIRST_ITEM, SECOND_ITEM = item_of(int), item_of(str)


@PITFALLS.shape(
    "parameters called like JSON Schema's keywords",
    takes("title", "type", "default", "properties", "required", "items", "enum", "description"),
    required("title", "items"),
    types("items", "array"),
    gets({"title": "t", "items": [1], "type": "null"}, "t null d {} False [1] e s"),
)
def keyword_names(  # noqa: PLR0913, PLR0917  # the names are the shape
    title: str,
    items: list[int],
    type: str = "string",  # noqa: A002  # the shape
    default: str = "d",
    properties: dict[str, int] = {},  # noqa: B006  # the shape
    required: bool = False,
    enum: str = "e",
    description: str = "s",
) -> str:
    return f"{title} {type} {default} {properties} {required} {items} {enum} {description}"


@PITFALLS.shape(
    "a model's fields called like JSON Schema's keywords",
    gets({"data": {"title": "t", "type": "null", "anyOf": [1], "$ref": "#/x"}}, "t null 0 [1] #/x"),
    refuses({"data": {"type": "x"}}, "title"),
    refuses({"data": {"title": "t", "type": "y"}}, "type"),
)
def keyword_fields(data: Keywords) -> str:
    return f"{data.title} {data.type} {data.default} {data.anyOf} {data.ref}"


@PITFALLS.shape(
    "defaults and examples that look like schemas",
    property_has("query", default={"title": "a", "anyOf": [{"type": "null"}]}),
    property_has("place", examples=[{"title": "b", "default": None}]),
    gets({"place": {}}, "{'title': 'a', 'anyOf': [{'type': 'null'}]}"),
)
def schema_like_values(
    place: Annotated[dict[str, Any], Field(examples=[{"title": "b", "default": None}])],
    query: dict[str, Any] = {"title": "a", "anyOf": [{"type": "null"}]},  # noqa: B006  # the shape
) -> str:
    return str(place or query)


@PITFALLS.shape(
    "two models of one name",
    gets({"first": {"value": 1}, "second": {"value": "a"}}, "1 a"),
    refuses({"first": {"value": "a"}, "second": {"value": "a"}}, "first"),
    refuses({"first": {"value": 1}, "second": {"value": 1}}, "second"),
)
def same_names(first: FIRST_ITEM, second: SECOND_ITEM) -> str:  # type: ignore[valid-type]  # the shape
    return f"{first.value} {second.value}"  # type: ignore[attr-defined]  # the same


@PITFALLS.shape(
    "models that refer to each other",
    gets({"left": {"right": {"lefts": [{}, {}]}}}, "2"),
    refuses({"left": {"right": {"lefts": [{"right": 5}]}}}, "right"),
)
def mutual(left: Left) -> str:
    return str(len(left.right.lefts) if left.right else 0)


@PITFALLS.shape(
    "a recursive typing.TypedDict",
    gets({"top": {"name": "a", "folders": [{"name": "b", "folders": []}]}}, "b"),
    refuses({"top": {"name": "a", "folders": [{"name": "b"}]}}, "folders"),
)
def recursive_typed_dict(top: Folder) -> str:
    return top["folders"][0]["name"]


@PITFALLS.shape(
    "a generic dataclass",
    gets({"box": {"item": 1}}, "int 1"),
    refuses({"box": {"item": "a"}}, "item"),
)
def generic_dataclass(box: Box[int]) -> str:
    return show(box.item)


@PITFALLS.shape(
    "a sealed dataclass with a field of its own",
    gets({"sealed": {"size": 1}}, "1 7 ()"),
    gets({"sealed": {"size": 1, "tags": ["a"]}}, "1 7 ('a',)"),
)
def sealed_dataclass(sealed: Sealed) -> str:
    return f"{sealed.size} {sealed.area} {sealed.tags}"


@PITFALLS.shape(
    "a dataclass that checks itself",
    gets({"scaled": {"size": 2, "factor": 3}}, "6"),
    gets({"scaled": {"size": 2}}, "2"),
    refuses({"scaled": {"size": 20, "factor": 10}}, "size times factor is more than 100"),
)
def checking_dataclass(scaled: Scaled) -> str:
    return str(scaled.size)


@PITFALLS.shape(
    "a dataclass of pydantic's",
    gets({"checked": {"size": 1}}, "1"),
    refuses({"checked": {"size": 0}}, "size", "1"),
)
def pydantic_dataclass(checked: Checked) -> str:
    return str(checked.size)


@PITFALLS.shape(
    "Literal with None",
    allows("mode", "a", "b"),
    optional("mode"),
    gets({}, "None"),
    gets({"mode": "a"}, "a"),
)
def literal_none(mode: Literal["a", "b", None] = None) -> str:  # noqa: PYI061  # the shape
    return str(mode)


@PITFALLS.shape(
    "bounds around an option",
    property_has("size", minimum=1),
    property_has("tags", minItems=1),
    gets({}, "None None"),
    refuses({"size": 0}, "size"),
    refuses({"tags": []}, "tags"),
)
def bounds_around(
    size: Annotated[int | None, Field(ge=1)] = None,
    tags: Annotated[list[str], Field(min_length=1)] | None = None,
) -> str:
    return f"{size} {tags}"


@PITFALLS.shape("an Enum of automatic values", allows("shade", 1, 2), gets({"shade": 2}, "DARK"))
def automatic_enum(shade: Shade) -> str:
    return shade.name


@PITFALLS.shape(
    "a strict type of the author's", gets({"count": 5}, "5"), refuses({"count": "5"}, "count")
)
def strict_type(count: StrictInt) -> str:
    return str(count)


@PITFALLS.shape(
    "half of a surrogate pair, and levels without end",
    answers(lambda _value: True, {"value": "a\ud800"}),
    answers(lambda value: value == "list", {"value": [[[[[[[[[[1]]]]]]]]]]}),
)
def hostile_values(value: Any) -> str:  # noqa: ANN401  # the shape
    return type(value).__name__
