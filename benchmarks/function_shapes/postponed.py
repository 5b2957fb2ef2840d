"""Types whose annotations are texts at first, and types that only checkers know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from pydantic import BaseModel, Field

from benchmarks.function_shapes.checks import (
    describes,
    gets,
    lacks,
    outputs,
    property_has,
    refuses,
    takes,
)
from benchmarks.function_shapes.shape import Kit, Options, Served, Theme

if TYPE_CHECKING:
    from collections import ChainMap as Store

Function = Callable[..., Any]

POSTPONED = Theme("types")
UNFOUND = Theme("types")


@POSTPONED.shape(
    "postponed annotations",
    property_has("count", type="integer"),
    describes("later", "Comes below."),
    gets({"count": 1, "later": {"size": 2}}, "1 2 Later"),
    refuses({"count": 1, "later": {"size": "x"}}, "size"),
)
def module_level(count: int, later: Annotated[Later, Field(description="Comes below.")]) -> str:
    return f"{count} {later.size} {type(later).__name__}"


@POSTPONED.shape_made(
    "postponed annotations with a local class",
    gets({"point": {"x": 1}}, "True 1"),
    refuses({"point": {"x": "far"}}, "x"),
)
def local_class() -> Function:
    class Point(BaseModel):
        x: int

    def keep(point: Point) -> str:
        return f"{isinstance(point, Point)} {point.x}"

    return keep


@POSTPONED.shape_for(
    "a local class, converted where it is defined",
    gets({"spans": [{"start": 1}]}, "1"),
    refuses({"spans": [{"start": "far"}]}, "start"),
)
def converted_in_place(kit: Kit) -> Served:
    @dataclass
    class Span:
        start: int

    def keep(spans: list[Span]) -> str:
        return str(len(spans))

    return kit.serve(keep, Options())


@POSTPONED.shape(
    "a postponed typing.TypedDict",
    gets({"query": {"text": "a"}}, "{'text': 'a'}"),
    refuses({"query": {}}, "text"),
)
def postponed_typed_dict(query: Wish) -> str:
    return str(dict(query))


@POSTPONED.shape("a postponed return type", outputs("size"), gets({}, {"size": 3}))
def postponed_result() -> Later:
    return Later(size=3)


@POSTPONED.shape("a forward reference in quotes", gets({"later": {"size": 2}}, "2"))
def quoted(later: "Later | None" = None) -> str:  # noqa: UP037  # the shape
    return str(later and later.size)


class Later(BaseModel):
    """Defined after the functions that name it."""

    size: int


class Wish(TypedDict):
    """Defined after the function that names it."""

    text: str


@UNFOUND.shape("a result whose type only checkers know", gets({"size": 2}, [0, 0]))
def result_of_checkers(size: int) -> Store[int, int]:
    return [0] * size  # type: ignore[return-value]  # what JSON can say of it


@UNFOUND.shape(
    "a hidden parameter whose type only checkers know",
    lacks("store"),
    takes("size"),
    gets({"size": 2}, "2 True"),
    options=Options(hidden={"store"}),
)
def hidden_of_checkers(size: int, *, store: Store[int, int] | None = None) -> str:
    return f"{size} {store is None}"


@UNFOUND.shape("a parameter whose type only checkers know", refused="Store")
def parameter_of_checkers(store: Store[int, int]) -> int:
    return len(store)
