"""Types with parts: collections, models, dataclasses, named tuples and typed dictionaries."""

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, RootModel
from typing_extensions import TypeAliasType

from benchmarks.function_shapes.checks import (
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
from benchmarks.function_shapes.subjects import Page, Pair, Point

Function = Callable[..., Any]

Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | int | None")

STRUCTURES = Theme("types")


class Query(typing.TypedDict):
    """As the standard library has it."""

    text: str
    limit: typing.NotRequired[int]


class Inner(typing.TypedDict):
    """Stands in another."""

    depth: int


class Outer(typing.TypedDict, total=False):
    """Holds another."""

    inner: typing.Required[Inner]
    note: str


class Wide(typing_extensions.TypedDict):
    """As typing_extensions has it."""

    text: str
    limit: typing_extensions.NotRequired[int]


@STRUCTURES.shape(
    "list, dict, set, frozenset and tuple",
    types("names", "array"),
    types("ages", "object"),
    types("tags", "array"),
    property_has("pair", minItems=2, maxItems=2),
    gets(
        {"names": ["a"], "ages": {"b": 1}, "tags": ["t", "t"], "more": [2], "pair": [1, "x"]},
        "list ['a'] dict {'b': 1} set {'t'} frozenset frozenset({2}) tuple (1, 'x')",
        valid=False,  # a set's schema may want the items to be unique
    ),
    refuses({"names": [[]], "ages": {}, "tags": [], "more": [], "pair": [1, "x"]}, "names"),
    refuses({"names": [], "ages": {"b": "x"}, "tags": [], "more": [], "pair": [1, "x"]}, "ages"),
    refuses({"names": [], "ages": {}, "tags": [], "more": [], "pair": [1]}, "pair"),
)
def collections_of(
    names: list[str],
    ages: dict[str, int],
    tags: set[str],
    more: frozenset[int],
    pair: tuple[int, str],
) -> str:
    return " ".join(map(show, (names, ages, tags, more, pair)))


@STRUCTURES.shape(
    "bare list, dict, set and tuple",
    types("a", "array"),
    types("b", "object"),
    gets(
        {"a": [1, "x"], "b": {"k": [1]}, "c": [1], "d": [1, 2]},
        "list [1, 'x'] dict {'k': [1]} set {1} tuple (1, 2)",
    ),
    refuses({"a": 1, "b": {}, "c": [], "d": []}, "a"),
)
def bare_collections(a: list, b: dict, c: set, d: tuple) -> str:  # type: ignore[type-arg]  # the shape
    return " ".join(map(show, (a, b, c, d)))


@STRUCTURES.shape(
    "collections in collections",
    gets({"table": [{"row": [1, 2]}, {}]}, "[{'row': [1, 2]}, {}]"),
    refuses({"table": [{"row": [1, "x"]}]}, "table", "row"),
)
def nested_collections(table: list[dict[str, list[int]]]) -> str:
    return str(table)


@STRUCTURES.shape(
    "abstract collections",
    types("items", "array"),
    types("table", "object"),
    types("many", "array"),
    gets({"items": [1], "table": {"a": 1}, "many": [1, 2, 3]}, "[1] {'a': 1} (1, 2, 3)"),
)
def abstract_collections(
    items: Sequence[int], table: Mapping[str, int], many: tuple[int, ...]
) -> str:
    return f"{list(items)} {dict(table)} {many}"


@STRUCTURES.shape(
    "keys that are numbers", gets({"names": {"1": "a"}}, "{1: 'a'}"), types("names", "object")
)
def number_keys(names: dict[int, str]) -> str:
    return str(names)


@STRUCTURES.shape(
    "a NamedTuple",
    # An array or an object, as the schema has it.
    answers(lambda value: value is True, {"pair": [1, "b"]}, valid=False),
)
def named_tuple(pair: Pair) -> bool:
    return isinstance(pair, Pair) and pair == Pair(1, "b")


@STRUCTURES.shape(
    "typing.TypedDict",
    gets({"query": {"text": "a"}}, "{'text': 'a'}"),
    gets({"query": {"text": "a", "limit": 2}}, "{'text': 'a', 'limit': 2}"),
    refuses({"query": {"limit": 2}}, "text"),
    refuses({"query": {"text": "a", "limit": "x"}}, "limit"),
)
def typed_dict(query: Query) -> str:
    return str(dict(query))


@STRUCTURES.shape(
    "typing.TypedDict in another",
    gets({"outer": {"inner": {"depth": 1}}}, "{'inner': {'depth': 1}}"),
    refuses({"outer": {"note": "a"}}, "inner"),
    refuses({"outer": {"inner": {}}}, "depth"),
)
def nested_typed_dict(outer: Outer) -> str:
    return str(dict(outer))


@STRUCTURES.shape(
    "typing_extensions.TypedDict",
    gets({"queries": [{"text": "a", "limit": 2}]}, "[{'text': 'a', 'limit': 2}]"),
    refuses({"queries": [{"limit": 2}]}, "text"),
)
def typed_dict_extension(queries: list[Wide]) -> str:
    return str([dict(query) for query in queries])


@STRUCTURES.shape(
    "a recursive type alias",
    required("value"),
    gets({"value": {"a": [1, {"b": "c"}]}}, "{'a': [1, {'b': 'c'}]}"),
)
def recursive_alias(value: Json) -> str:
    return str(value)


@STRUCTURES.shape_made(
    "thirty parameters",
    takes(*(f"p{place}" for place in range(30))),
    required("p0"),
    optional("p29"),
    gets({"p0": 1, "p29": "z"}, "1 z"),
)
def many_parameters() -> Function:
    source = ", ".join(f"p{place}: {'str' if place % 2 else 'int'} = 0" for place in range(1, 30))
    scope: dict[str, Any] = {}
    exec(f"def many(p0: int, {source}) -> str:\n    return f'{{p0}} {{p29}}'", scope)  # noqa: S102  # thirty parameters by hand are hard to read
    function: Function = scope["many"]
    return function


@STRUCTURES.shape("an iterable", types("numbers", "array"), gets({"numbers": [1, 2]}, "[1, 2]"))
def iterable(numbers: Iterable[int]) -> str:
    return str(list(numbers))


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


@STRUCTURES.shape(
    "a model in a model",
    gets({"person": {"name": "Ann", "address": {"street": "A"}}}, "Person Ann Address 8000 None"),
    refuses({"person": {"name": "Ann", "address": {"street": "A", "zip": "x"}}}, "zip"),
    refuses({"person": {"name": "Ann"}}, "address"),
)
def nested_model(person: Person) -> str:
    kinds = f"{type(person).__name__} {person.name} {type(person.address).__name__}"
    return f"{kinds} {person.address.zip} {person.nickname}"


@STRUCTURES.shape(
    "lists and dictionaries of models",
    gets({"people": [{"street": "A"}], "homes": {"b": {"street": "B", "zip": 1}}}, "A 8000 B 1"),
    refuses({"people": [{"street": "A"}, {"zip": 1}], "homes": {}}, "people", "street"),
)
def model_collections(people: list[Address], homes: dict[str, Address]) -> str:
    return " ".join(f"{each.street} {each.zip}" for each in (*people, *homes.values()))


@STRUCTURES.shape(
    "an optional model",
    optional("address"),
    gets({}, "None"),
    gets({"address": {"street": "A"}}, "A"),
)
def optional_model(address: Address | None = None) -> str:
    return "None" if address is None else address.street


@STRUCTURES.shape(
    "a recursive model",
    gets({"tree": {"label": "a", "children": [{"label": "b"}]}}, "a b"),
    refuses({"tree": {"label": "a", "children": [{"children": []}]}}, "label"),
)
def recursive_model(tree: Tree) -> str:
    return " ".join([tree.label, *(child.label for child in tree.children)])


@STRUCTURES.shape(
    "a discriminated union",
    gets({"pet": {"kind": "cat", "lives": 9}}, "Cat"),
    gets({"pet": {"kind": "dog", "tricks": ["sit"]}}, "Dog"),
    refuses({"pet": {"kind": "cow"}}, "pet", "cat"),
    refuses({"pet": {"kind": "cat", "lives": "x"}}, "lives"),
)
def discriminated(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
    return type(pet).__name__


@STRUCTURES.shape(
    "a generic model",
    gets({"page": {"items": [1, 2]}}, "[1, 2]"),
    refuses({"page": {"items": ["x"]}}, "items"),
)
def generic_model(page: Page[int]) -> str:
    return str(page.items)


@STRUCTURES.shape("a model of a list", types("tags", "array"), gets({"tags": ["a"]}, "Tags ['a']"))
def root_model(tags: Tags) -> str:
    return f"{type(tags).__name__} {tags.root}"


@STRUCTURES.shape("a model's field with an alias", gets({"mail": {"from": "ann"}}, "ann"))
def aliased_field(mail: Mail) -> str:
    return mail.sender


@STRUCTURES.shape(
    "a dataclass",
    gets({"point": {"x": 1}}, "Point 1 0"),
    refuses({"point": {"x": "far"}}, "point", "x"),
    refuses({"point": {"y": 1}}, "x"),
)
def data_class(point: Point) -> str:
    return f"{type(point).__name__} {point.x} {point.y}"


@STRUCTURES.shape(
    "a recursive dataclass with a factory",
    gets({"path": {"points": [{"x": 1}], "source": {"points": []}}}, "Point Path []"),
)
def nested_data_class(path: Path) -> str:
    return f"{type(path.points[0]).__name__} {type(path.source).__name__} {path.tags}"


@STRUCTURES.shape(
    "a union of models without a discriminator",
    gets({"what": {"street": "A"}}, "Address"),
    gets({"what": {"kind": "cat", "lives": 9}}, "Cat"),
    refuses({"what": {"colour": "red"}}, "what"),
)
def plain_union(what: Address | Cat) -> str:
    return type(what).__name__


@STRUCTURES.shape(
    "a model that forbids what it does not know",
    gets({"order": {"item": "a"}}, "a"),
    refuses({"order": {"item": "a", "amuont": 2}}, "amuont"),
)
def forbidding(order: Order) -> str:
    return order.item
