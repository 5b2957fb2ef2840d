"""Types with parts: collections, models, dataclasses, named tuples and typed dictionaries."""

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import typing_extensions
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
from benchmarks.function_shapes.subjects import Pair

__all__ = ["STRUCTURES"]

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
