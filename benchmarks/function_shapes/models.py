"""Models and dataclasses: in each other, in collections, in unions and within themselves."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from benchmarks.function_shapes.checks import gets, optional, refuses, types
from benchmarks.function_shapes.shape import Theme
from benchmarks.function_shapes.subjects import Page, Point

__all__ = ["MODELS"]

Function = Callable[..., Any]

MODELS = Theme("types")


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    zip: int = 8000


class Person(BaseModel):
    """Somebody."""

    name: str
    address: Address
    nickname: str | None = None


class Tree(BaseModel):
    """A node and what hangs on it."""

    label: str
    children: "list[Tree]" = []


class Cat(BaseModel):
    """Tells itself by its kind."""

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    """Tells itself by its kind."""

    kind: Literal["dog"]
    tricks: list[str]


class Tags(RootModel[list[str]]):
    """A list with a name."""


class Mail(BaseModel):
    """Has a field that Python has no name for."""

    model_config = ConfigDict(populate_by_name=True)

    sender: str = Field(alias="from")


class Order(BaseModel):
    """Knows exactly what it takes."""

    model_config = ConfigDict(extra="forbid")

    item: str
    amount: int = 1


@dataclass
class Path:
    """Points, and where they came from."""

    points: list[Point]
    source: "Path | None" = None
    tags: list[str] = dataclasses.field(default_factory=list)


@MODELS.shape(
    "a model in a model",
    gets({"person": {"name": "Ann", "address": {"street": "A"}}}, "Person Ann Address 8000 None"),
    refuses({"person": {"name": "Ann", "address": {"street": "A", "zip": "x"}}}, "zip"),
    refuses({"person": {"name": "Ann"}}, "address"),
)
def nested_model(person: Person) -> str:
    kinds = f"{type(person).__name__} {person.name} {type(person.address).__name__}"
    return f"{kinds} {person.address.zip} {person.nickname}"


@MODELS.shape(
    "lists and dictionaries of models",
    gets({"people": [{"street": "A"}], "homes": {"b": {"street": "B", "zip": 1}}}, "A 8000 B 1"),
    refuses({"people": [{"street": "A"}, {"zip": 1}], "homes": {}}, "people", "street"),
)
def model_collections(people: list[Address], homes: dict[str, Address]) -> str:
    return " ".join(f"{each.street} {each.zip}" for each in (*people, *homes.values()))


@MODELS.shape(
    "an optional model",
    optional("address"),
    gets({}, "None"),
    gets({"address": {"street": "A"}}, "A"),
)
def optional_model(address: Address | None = None) -> str:
    return "None" if address is None else address.street


@MODELS.shape(
    "a recursive model",
    gets({"tree": {"label": "a", "children": [{"label": "b"}]}}, "a b"),
    refuses({"tree": {"label": "a", "children": [{"children": []}]}}, "label"),
)
def recursive_model(tree: Tree) -> str:
    return " ".join([tree.label, *(child.label for child in tree.children)])


@MODELS.shape(
    "a discriminated union",
    gets({"pet": {"kind": "cat", "lives": 9}}, "Cat"),
    gets({"pet": {"kind": "dog", "tricks": ["sit"]}}, "Dog"),
    refuses({"pet": {"kind": "cow"}}, "pet", "cat"),
    refuses({"pet": {"kind": "cat", "lives": "x"}}, "lives"),
)
def discriminated(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
    return type(pet).__name__


@MODELS.shape(
    "a generic model",
    gets({"page": {"items": [1, 2]}}, "[1, 2]"),
    refuses({"page": {"items": ["x"]}}, "items"),
)
def generic_model(page: Page[int]) -> str:
    return str(page.items)


@MODELS.shape("a model of a list", types("tags", "array"), gets({"tags": ["a"]}, "Tags ['a']"))
def root_model(tags: Tags) -> str:
    return f"{type(tags).__name__} {tags.root}"


@MODELS.shape("a model's field with an alias", gets({"mail": {"from": "ann"}}, "ann"))
def aliased_field(mail: Mail) -> str:
    return mail.sender


@MODELS.shape(
    "a dataclass",
    gets({"point": {"x": 1}}, "Point 1 0"),
    refuses({"point": {"x": "far"}}, "point", "x"),
    refuses({"point": {"y": 1}}, "x"),
)
def data_class(point: Point) -> str:
    return f"{type(point).__name__} {point.x} {point.y}"


@MODELS.shape(
    "a recursive dataclass with a factory",
    gets({"path": {"points": [{"x": 1}], "source": {"points": []}}}, "Point Path []"),
)
def nested_data_class(path: Path) -> str:
    return f"{type(path.points[0]).__name__} {type(path.source).__name__} {path.tags}"


@MODELS.shape(
    "a union of models without a discriminator",
    gets({"what": {"street": "A"}}, "Address"),
    gets({"what": {"kind": "cat", "lives": 9}}, "Cat"),
    refuses({"what": {"colour": "red"}}, "what"),
)
def plain_union(what: Address | Cat) -> str:
    return type(what).__name__


@MODELS.shape(
    "a model that forbids what it does not know",
    gets({"order": {"item": "a"}}, "a"),
    refuses({"order": {"item": "a", "amuont": 2}}, "amuont"),
)
def forbidding(order: Order) -> str:
    return order.item
