"""`typing.TypedDict` wherever it stands, also where pydantic alone refuses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, with_config

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError

T = TypeVar("T")


class Node(TypedDict):
    """A node.

    Attributes:
        value: What it holds.
    """

    value: int
    children: NotRequired[list[Node]]


class Base(TypedDict, total=False):
    name: Required[str]
    note: str


class Derived(Base):
    size: Annotated[int, Field(ge=1)]


class Boxed(TypedDict, Generic[T]):
    item: T


@with_config(ConfigDict(extra="forbid"))
class Closed(TypedDict):
    a: int


@dataclass
class Tree:
    root: Node
    left: Tree | None = None


class Pair(NamedTuple):
    first: Node
    second: Node


@pytest.mark.parametrize(
    ("annotation", "accepted", "rejected", "complaint"),
    [
        (Node, {"value": 1, "children": [{"value": 2}]}, {"value": "z"}, "`x.value` is 'z'"),
        (list[Node], [{"value": 1}], [{}], "`x[0].value` is missing; add an integer: What it h"),
        (Derived, {"name": "a", "size": 1}, {"size": 0}, "`x.name` is missing"),
        (Derived, {"name": "a", "size": 1}, {"name": "a", "size": 0}, "`x.size` is 0; send an int"),
        (Boxed[int], {"item": 1}, {"item": "z"}, "`x.item` is 'z'"),
        (Boxed[list[Node]], {"item": [{"value": 1}]}, {"item": [1]}, "`x.item[0]` is 1"),
        (Closed, {"a": 1}, {"a": 1, "b": 2}, "`x.b` is unknown"),
        (
            Node | None,
            {"value": 1},
            5,
            "`x` is 5; send an object with `value`, `children`, or null.",
        ),
    ],
)
def test_a_typed_dict_is_validated(
    annotation: Any, accepted: Any, rejected: Any, complaint: str, taking: Callable[[Any], Any]
) -> None:
    spec = FunctionToMCP.convert(taking(annotation))
    assert spec.validate({"x": accepted}) == {"x": accepted}
    with pytest.raises(InvalidArgumentsError) as caught:
        spec.validate({"x": rejected})
    assert complaint in caught.value.message


async def test_one_in_a_dataclass_is_read() -> None:
    def values(tree: Tree) -> list[int]:
        return [tree.root["value"], *(tree.left.root["value"] for _ in [1] if tree.left)]

    spec = FunctionToMCP.convert(values)
    raw = {"tree": {"root": {"value": 1}, "left": {"root": {"value": 2, "children": []}}}}
    assert (await spec.invoke(spec.validate(raw), RequestContext())).structured == {
        "result": [1, 2]
    }
    with pytest.raises(InvalidArgumentsError, match=r"`tree.left.root.value` is 'z'"):
        spec.validate({"tree": {"root": {"value": 1}, "left": {"root": {"value": "z"}}}})


def test_one_in_a_named_tuple_is_read(taking: Callable[[Any], Any]) -> None:
    values = FunctionToMCP.convert(taking(Pair)).validate({"x": [{"value": 1}, {"value": 2}]})
    assert values["x"] == Pair({"value": 1}, {"value": 2})


def test_local_classes_may_name_each_other() -> None:
    class First(BaseModel):
        second: Second

    class Second(BaseModel):
        value: int

    @dataclass
    class Holder:
        first: First
        other: Other | None = None

    @dataclass
    class Other:
        value: int

    def take(x: Holder) -> int:
        return x.first.second.value

    spec = FunctionToMCP.convert(take)
    raw = {"x": {"first": {"second": {"value": 1}}, "other": {"value": 2}}}
    assert spec.validate(raw)["x"].other == Other(2)
