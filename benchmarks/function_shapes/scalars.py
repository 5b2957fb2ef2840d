"""Types without parts: numbers, texts, choices, times, and the unions of them."""

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, NewType, TypeVar

from annotated_types import Ge, Le
from pydantic import AfterValidator, AnyUrl, Field, PositiveInt

from benchmarks.function_shapes.checks import (
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

UserId = NewType("UserId", int)

AnyT = TypeVar("AnyT")

NumberT = TypeVar("NumberT", int, float)

TextT = TypeVar("TextT", bound=str)

SCALARS = Theme("types")


def even(value: int) -> int:
    """Refuses odd numbers."""
    if value % 2:
        raise ValueError("must be even, such as 4")
    return value


@SCALARS.shape(
    "int, float, str and bool",
    types("count", "integer"),
    types("ratio", "number"),
    types("label", "string"),
    types("on", "boolean"),
    required("count", "ratio", "label", "on"),
    gets({"count": 2, "ratio": 1, "label": "a", "on": True}, "2 1.0 a True"),
    refuses({"count": 1.5, "ratio": 1, "label": "a", "on": True}, "count"),
    refuses({"count": 1, "ratio": "big", "label": "a", "on": True}, "ratio"),
    refuses({"count": 1, "ratio": 1, "label": 5, "on": True}, "label"),
    refuses({"count": 1, "ratio": 1, "label": "a", "on": "perhaps"}, "on"),
)
def primitives(count: int, ratio: float, label: str, on: bool) -> str:
    return f"{count} {float(ratio)} {label} {on}"


@SCALARS.shape(
    "an integer of 31 digits", gets({"number": 10**30 + 1}, "1000000000000000000000000000001")
)
def big(number: int) -> str:
    return str(number)


@SCALARS.shape(
    "datetime, date and time",
    property_has("moment", type="string", format="date-time"),
    property_has("day", type="string", format="date"),
    property_has("clock", type="string", format="time"),
    gets(
        {"moment": "2026-03-31T12:00:00Z", "day": "2026-03-31", "clock": "12:30:00"},
        "datetime 2026-03-31 12:00:00+00:00, date 2026-03-31, time 12:30:00",
    ),
    refuses({"moment": "soon", "day": "2026-03-31", "clock": "12:30"}, "moment"),
    refuses({"moment": "2026-03-31T12:00:00Z", "day": "2026-02-31", "clock": "12:30"}, "day"),
)
def times(moment: dt.datetime, day: dt.date, clock: dt.time) -> str:
    return ", ".join(map(show, (moment, day, clock)))


@SCALARS.shape(
    "timedelta",
    property_has("span", type="string", format="duration"),
    gets({"span": "PT1H30M"}, "timedelta 1:30:00"),
    refuses({"span": "a while"}, "span"),
)
def duration(span: dt.timedelta) -> str:
    return show(span)


@SCALARS.shape(
    "UUID",
    property_has("key", type="string", format="uuid"),
    gets(
        {"key": "3fa85f64-5717-4562-b3fc-2c963f66afa6"}, "UUID 3fa85f64-5717-4562-b3fc-2c963f66afa6"
    ),
    refuses({"key": "abc"}, "key"),
)
def uuids(key: uuid.UUID) -> str:
    return show(key)


@SCALARS.shape("Path", types("file", "string"), gets({"file": "a/b.txt"}, "True b.txt"))
def path(file: Path) -> str:
    return f"{isinstance(file, Path)} {file.name}"


@SCALARS.shape(
    "Decimal",
    gets({"price": "0.10"}, "Decimal 0.10", valid=False),  # a number or a text may be listed
    gets({"price": 2}, "Decimal 2"),
    refuses({"price": "cheap"}, "price"),
)
def decimal(price: Decimal) -> str:
    return show(price)


@SCALARS.shape(
    "bytes",
    types("data", "string"),
    # Either the text's UTF-8 or what its Base64 says; the schema has to tell which.
    gets({"data": "aGk="}, "bytes b'hi'", "bytes b'aGk='"),
)
def byte_string(data: bytes) -> str:
    return show(data)


@SCALARS.shape(
    "a URL and an IP address",
    types("url", "string"),
    types("address", "string"),
    gets({"url": "https://example.com/a", "address": "10.0.0.1"}, "example.com True"),
    refuses({"url": "no url", "address": "10.0.0.1"}, "url"),
    refuses({"url": "https://example.com/a", "address": "10.0.0.256"}, "address"),
)
def addresses(url: AnyUrl, address: IPv4Address) -> str:
    return f"{url.host} {isinstance(address, IPv4Address)}"


@SCALARS.shape("NewType", types("user", "integer"), gets({"user": 7}, "int 7"))
def new_type(user: UserId) -> str:
    return show(user)


@SCALARS.shape(
    "TypeVar: free, bound and of choices",
    takes("anything", "text", "number"),
    types("text", "string"),
    gets({"anything": {"a": 1}, "text": "t", "number": 2}, "dict {'a': 1} str t int 2"),
    refuses({"anything": 1, "text": 5, "number": 2}, "text"),
    refuses({"anything": 1, "text": "t", "number": "much"}, "number"),
)
def type_variables(anything: AnyT, text: TextT, number: NumberT) -> str:
    return f"{show(anything)} {show(text)} {show(number)}"


@SCALARS.shape(
    "bounds and patterns",
    property_has("count", minimum=1, maximum=9),
    property_has("code", pattern="^[A-Z]{2}$"),
    property_has("tags", maxItems=2),
    property_has("size", exclusiveMinimum=0),
    gets({"count": 9, "code": "CH", "tags": [], "size": 1}, "9 CH [] 1"),
    refuses({"count": 10, "code": "CH", "tags": [], "size": 1}, "count", "9"),
    refuses({"count": 1, "code": "ch", "tags": [], "size": 1}, "code"),
    refuses({"count": 1, "code": "CH", "tags": ["a", "b", "c"], "size": 1}, "tags"),
    refuses({"count": 1, "code": "CH", "tags": [], "size": 0}, "size"),
)
def bounds(
    count: Annotated[int, Ge(1), Le(9)],
    code: Annotated[str, Field(pattern="^[A-Z]{2}$")],
    tags: Annotated[list[str], Field(max_length=2)],
    size: PositiveInt,
) -> str:
    return f"{count} {code} {tags} {size}"


@SCALARS.shape(
    "a validator of the author's",
    gets({"number": 4}, "4"),
    refuses({"number": 3}, "number", "must be even, such as 4"),
)
def validator(number: Annotated[int, AfterValidator(even)]) -> str:
    return str(number)


@SCALARS.shape(
    "Any and object",
    takes("one", "two"),
    gets({"one": [1], "two": {"a": None}}, "list [1] dict {'a': None}"),
    gets({"one": "5", "two": "[1]"}, "str 5 str [1]"),
)
def anything(one: Any, two: object) -> str:  # noqa: ANN401  # the shape
    return f"{show(one)} {show(two)}"


@SCALARS.shape(
    "no annotations",
    takes("first", "second"),
    required("first"),
    optional("second"),
    gets({"first": "a"}, "str a int 3"),
    gets({"first": [1], "second": 4}, "list [1] int 4"),
)
def bare(first, second=3):  # type: ignore[no-untyped-def]  # noqa: ANN001  # the shape
    return f"{show(first)} {show(second)}"


@SCALARS.shape(
    "a whole number written as 1.0 for an int",
    gets({"count": 1.0}, "int 1"),
    types("count", "integer"),
)
def whole_float(count: int) -> str:
    return show(count)
