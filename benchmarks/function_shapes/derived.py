"""Types that are made of others: subclasses of plain ones, words in words, odd containers."""

import collections
import enum
import ipaddress
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Literal, NewType

import annotated_types
from pydantic import AwareDatetime, Field

from benchmarks.function_shapes.checks import (
    allows,
    describes,
    gets,
    optional,
    property_has,
    refuses,
    required,
    types,
)
from benchmarks.function_shapes.shape import Theme, show

Function = Callable[..., Any]

DERIVED = Theme("types")

UserId = NewType("UserId", int)
AdminId = NewType("AdminId", UserId)
Age = Annotated[int, Field(ge=0)]
Size = Literal["small", "large", 3]


class Slug(str):  # the shape
    """A text with a name."""

    __slots__ = ()


class Celsius(float):
    """A number with a name."""


class Beds(list[int]):  # the shape
    """A list with a name."""


class Mood(enum.StrEnum):
    """Values made of names."""

    GOOD = enum.auto()
    BAD = enum.auto()


@dataclass(kw_only=True)
class Harvest:
    """Has a field that only its making needs, and one that it sets itself."""

    weight: float
    crates: InitVar[int] = 1
    names: list[str] = field(default_factory=list)
    each: float = field(init=False)

    def __post_init__(self, crates: int) -> None:
        self.each = self.weight / crates


@DERIVED.shape(
    "subclasses of str, float and list",
    types("slug", "string"),
    types("heat", "number"),
    types("beds", "array"),
    gets({"slug": "a", "heat": 1.5, "beds": [1]}, "Slug Celsius Beds"),
    refuses({"slug": 1, "heat": 1.5, "beds": [1]}, "slug"),
    refuses({"slug": "a", "heat": 1.5, "beds": ["x"]}, "beds"),
)
def subclasses(slug: Slug, heat: Celsius, beds: Beds) -> str:
    return " ".join(type(each).__name__ for each in (slug, heat, beds))


@DERIVED.shape("NewType of NewType", types("who", "integer"), gets({"who": 5}, "int 5"))
def chained_new_types(who: AdminId) -> str:
    return show(who)


@DERIVED.shape(
    "Literal in Literal",
    allows("size", "small", "large", 3),
    gets({"size": 3}, "int 3"),
    refuses({"size": "medium"}, "small"),
)
def nested_literal(size: Size) -> str:
    return show(size)


@DERIVED.shape(
    "Annotated in Annotated",
    describes("age", "Years."),
    property_has("age", minimum=0, maximum=150),
    gets({"age": 5}, 5),
    refuses({"age": 151}, "150"),
)
def nested_annotated(
    age: Annotated[Annotated[int, Field(ge=0)], Field(le=150, description="Years.")],
) -> int:
    return age


@DERIVED.shape(
    "constraints of annotated-types",
    property_has("count", exclusiveMinimum=0, multipleOf=2),
    property_has("names", minItems=1, maxItems=2),
    gets({"count": 4, "names": ["a"]}, "4 1"),
    refuses({"count": 3, "names": ["a"]}, "count"),
    refuses({"count": 4, "names": []}, "names"),
)
def annotated_constraints(
    count: Annotated[int, annotated_types.Gt(0), annotated_types.MultipleOf(2)],
    names: Annotated[list[str], annotated_types.Len(1, 2)],
) -> str:
    return f"{count} {len(names)}"


@DERIVED.shape(
    "a StrEnum of automatic values",
    allows("mood", "good", "bad"),
    gets({"mood": "bad"}, "Mood bad"),
)
def automatic_str_enum(mood: Mood) -> str:
    return show(mood)


@DERIVED.shape(
    "a dataclass with InitVar and a field of its own",
    gets({"harvest": {"weight": 6, "crates": 3}}, 2.0),
    gets({"harvest": {"weight": 6}}, 6.0),
    refuses({"harvest": {"crates": 3}}, "weight"),
)
def init_var(harvest: Harvest) -> float:
    return harvest.each


@DERIVED.shape(
    "a path of any class",
    types("path", "string"),
    types("other", "string"),
    optional("other"),
    gets({"path": "a/b"}, "a/b None"),
    refuses({"path": 1}, "path"),
)
def path_like(path: "os.PathLike[str]", other: "str | os.PathLike[str] | None" = None) -> str:
    return f"{os.fspath(path)} {other}"


@DERIVED.shape(
    "a text or a pattern, a text or bytes",
    types("pattern", "string"),
    types("data", "string"),
    gets({"pattern": "a+", "data": "caat"}, "aa"),
)
def text_or(pattern: "str | re.Pattern[str]", data: bytes | str) -> str:
    text = data if isinstance(data, str) else data.decode()
    found = re.search(pattern, text)
    return found[0] if found else ""


@DERIVED.shape(
    "a complex number and a fraction",
    gets({"wave": "1+2j", "part": "1/3"}, "complex (1+2j) Fraction 1/3"),
    refuses({"wave": "x", "part": "1/3"}, "wave"),
    refuses({"wave": "1j", "part": "one"}, "part"),
)
def odd_numbers(wave: complex, part: Fraction) -> str:
    return f"{show(wave)} {show(part)}"


@DERIVED.shape(
    "a network and a time with its zone",
    gets({"net": "10.0.0.0/8", "at": "2026-01-01T00:00:00Z"}, "10.0.0.0/8 2026"),
    refuses({"net": "10.0.0.1/8", "at": "2026-01-01T00:00:00Z"}, "net"),
    refuses({"net": "10.0.0.0/8", "at": "2026-01-01T00:00:00"}, "at"),
)
def network(net: ipaddress.IPv4Network, at: AwareDatetime) -> str:
    return f"{net} {at.year}"


@DERIVED.shape_made(
    "a sequence of mappings",
    types("rows", "array"),
    gets({"rows": [{"a": 1}, {"a": 2}]}, 3),
    refuses({"rows": [{"a": "x"}]}, "rows"),
)
def rows() -> Function:
    def total(rows: Sequence[Mapping[str, int]]) -> int:
        return sum(each["a"] for each in rows)

    return total


@DERIVED.shape(
    "an iterator to be awaited",
    types("words", "array"),
    gets({"words": ["a", "b"]}, "ab"),
    refuses({"words": "a"}, "words"),
)
async def async_iterator(words: AsyncIterator[str]) -> str:
    return "".join([each async for each in words])


@DERIVED.shape(
    "a view of bytes",
    types("data", "string"),
    gets({"data": "abc"}, "memoryview 3"),
    refuses({"data": 3}, "data"),
)
def view(data: memoryview) -> str:
    return f"{type(data).__name__} {len(data)}"


@DERIVED.shape(
    "counters and deques",
    gets({"counts": {"a": 2}, "last": [1, 2, 3]}, "Counter 2 deque 3"),
    refuses({"counts": {"a": "x"}, "last": []}, "counts"),
)
def collections_of_pythons(
    counts: "collections.Counter[str]", last: "collections.deque[int]"
) -> str:
    return f"{type(counts).__name__} {counts['a']} {type(last).__name__} {len(last)}"


@DERIVED.shape(
    "an ellipsis for a default",
    required("count", "name"),
    optional("size"),
    gets({"count": 1, "name": "a"}, "1 a 3"),
    refuses({"name": "a"}, "count"),
    refuses({"count": 1}, "name"),
)
def ellipsis_default(count: int = ..., name: str = Field(...), size: int = 3) -> str:  # type: ignore[assignment]  # the shape
    return f"{count} {name} {size}"
