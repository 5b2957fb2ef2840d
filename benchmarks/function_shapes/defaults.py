"""Defaults, names and opaque types: what a schema cannot simply copy."""

import datetime as dt
import enum
import math
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from benchmarks.function_shapes.checks import (
    gets,
    lacks,
    optional,
    property_has,
    refuses,
    required,
    takes,
    types,
)
from benchmarks.function_shapes.shape import Options, Theme, show

Function = Callable[..., Any]

DEFAULTS = Theme("types")

MISSING: Any = object()


@dataclass
class Point:
    """A default that is not JSON."""

    x: int


class Span(BaseModel):
    """Its two parts have to fit."""

    first: int
    last: int

    @model_validator(mode="after")
    def check_order(self) -> Self:
        """Refuses what is the wrong way round."""
        if self.first > self.last:
            raise ValueError("first has to come before last")
        return self


class Mode(enum.Enum):
    """How thorough."""

    FAST = "fast"
    SLOW = "slow"


@DEFAULTS.shape(
    "plain defaults",
    optional("a", "b", "c", "d"),
    property_has("a", default=3),
    property_has("b", default="x"),
    property_has("c", default=False),
    gets({}, "3 x False 0.5"),
    gets({"c": True, "a": 0}, "0 x True 0.5"),
)
def plain_defaults(a: int = 3, b: str = "x", c: bool = False, d: float = 0.5) -> str:
    return f"{a} {b} {c} {d}"


@DEFAULTS.shape(
    "a mutable default",
    optional("tags"),
    types("tags", "array"),
    gets({}, "[]"),
    gets({"tags": ["a"]}, "['a']"),
    gets({}, "[]"),
)
def mutable_default(tags: list[str] = []) -> str:  # noqa: B006  # the shape
    return str(tags)


@DEFAULTS.shape(
    "a sentinel for a default",
    optional("limit"),
    types("limit", "integer"),
    gets({}, "left out"),
    gets({"limit": 3}, "3"),
)
def sentinel(limit: int = MISSING) -> str:
    return "left out" if limit is MISSING else str(limit)


@DEFAULTS.shape(
    "defaults of dates, paths and enums",
    optional("day", "folder", "mode"),
    gets({}, "date 2026-01-01 True Mode.FAST"),
    gets({"day": "2026-02-01", "mode": "slow"}, "date 2026-02-01 True Mode.SLOW"),
)
def rich_defaults(
    day: dt.date = dt.date(2026, 1, 1), folder: Path = Path("/srv"), mode: Mode = Mode.FAST
) -> str:
    return f"{show(day)} {folder == Path('/srv')} {mode}"


@DEFAULTS.shape(
    "an infinite default",
    optional("limit"),
    types("limit", "number"),
    gets({}, "True"),
    gets({"limit": 1}, "False"),
)
def infinite_default(limit: float = math.inf) -> str:
    return str(math.isinf(limit))


@DEFAULTS.shape(
    "a default of another type than its annotation",
    optional("size"),
    gets({}, "str auto"),
    gets({"size": 3}, "int 3"),
)
def odd_default(size: int = "auto") -> str:  # type: ignore[assignment]  # the shape
    return show(size)


@DEFAULTS.shape("a factory of a default", optional("tags"), gets({}, "['new']"))
def default_factory(tags: Annotated[list[str], Field(default_factory=lambda: ["new"])]) -> str:
    return str(tags)


@DEFAULTS.shape("an opaque type", refused="conn|Connection")
def opaque(table: str, conn: sqlite3.Connection) -> str:
    return f"{table} {conn}"


@DEFAULTS.shape("an opaque type with a default", takes("table"), gets({"table": "a"}, "a None"))
def opaque_default(table: str, conn: sqlite3.Connection | None = None) -> str:
    return f"{table} {conn}"


@DEFAULTS.shape(
    "a function for a parameter", lacks("key"), gets({"words": ["bb", "a"]}, "['a', 'bb']")
)
def function_parameter(words: list[str], key: Callable[[str], int] = len) -> str:
    return str(sorted(words, key=key))


@DEFAULTS.shape_made(
    "a compiled pattern", gets({"pattern": "a+"}, "True"), types("pattern", "string")
)
def pattern() -> Function:
    def find(pattern: re.Pattern[str]) -> str:
        return str(pattern.match("aa") is not None)

    return find


@DEFAULTS.shape(
    "parameters called schema, json, copy and model_dump",
    takes("schema", "json", "copy", "model_dump"),
    required("schema", "json"),
    optional("copy", "model_dump"),
    gets({"schema": "s", "json": {"a": 1}}, "s {'a': 1} True 0"),
    gets({"schema": "s", "json": {}, "copy": False, "model_dump": 3}, "s {} False 3"),
)
def pydantic_names(
    schema: str, json: dict[str, int], copy: bool = True, model_dump: int = 0
) -> str:
    return f"{schema} {json} {copy} {model_dump}"


@DEFAULTS.shape(
    "parameters called model_config, model_fields, dict and validate",
    takes("model_config", "model_fields", "dict", "validate"),
    gets(
        {"model_config": "a", "model_fields": ["b"], "dict": 1, "validate": True}, "a ['b'] 1 True"
    ),
)
def more_pydantic_names(
    model_config: str,
    model_fields: list[str],
    dict: int,  # noqa: A002  # the shape
    validate: bool,
) -> str:
    return f"{model_config} {model_fields} {dict} {validate}"


@DEFAULTS.shape(
    "parameters called name, arguments, context, args, kwargs, func and self_",
    takes("name", "arguments", "context", "args", "kwargs", "func", "self_"),
    gets(
        {
            "name": "a",
            "arguments": {"b": 1},
            "context": "c",
            "args": [1],
            "kwargs": {},
            "func": "f",
            "self_": 2,
        },
        "a {'b': 1} c [1] {} f 2",
    ),
)
def framework_names(  # noqa: PLR0913, PLR0917  # the names are the shape
    name: str,
    arguments: dict[str, int],
    context: str,
    args: list[int],
    kwargs: dict[str, int],
    func: str,
    self_: int,
) -> str:
    return f"{name} {arguments} {context} {args} {kwargs} {func} {self_}"


@DEFAULTS.shape(
    "names with a leading underscore",
    takes("_limit", "__depth"),
    gets({"_limit": 2}, "2 1"),
    gets({"_limit": 2, "__depth": 4}, "2 4"),
)
def underscores(_limit: int, __depth: int = 1) -> str:
    return f"{_limit} {__depth}"


@DEFAULTS.shape(
    "an alias for a name that Python reserves",
    takes("from", "class"),
    gets({"from": "a", "class": "b"}, "a b"),
)
def aliases(from_: Annotated[str, Field(alias="from")], class_: str = Field(alias="class")) -> str:
    return f"{from_} {class_}"


@DEFAULTS.shape("a name in camelCase", takes("userId"), gets({"userId": 3}, "3"))
def camel_case(userId: int) -> str:  # noqa: N803  # the shape
    return str(userId)


@DEFAULTS.shape(
    "a name given beside", takes("city"), gets({"city": "a"}, "a"), options=Options(name="climate")
)
def given_name(city: str) -> str:
    return city


@DEFAULTS.shape(
    "defaults of bytes, times, sets, NaN and models",
    optional("data", "span", "tags", "gap", "point"),
    gets({}, "b'\\xff' 1:00:00 ['a'] True Point(x=1)"),
    gets({"point": {"x": 2}}, "b'\\xff' 1:00:00 ['a'] True Point(x=2)"),
)
def odd_defaults(
    data: bytes = b"\xff",
    span: dt.timedelta = dt.timedelta(hours=1),
    tags: frozenset[str] = frozenset({"a"}),
    gap: float = math.nan,
    point: Point = Point(1),  # noqa: B008  # the shape
) -> str:
    return f"{data!r} {span} {list(tags)} {math.isnan(gap)} {point}"


@DEFAULTS.shape(
    "a model with a validator of the author's",
    gets({"span": {"first": 1, "last": 2}}, "1 2"),
    refuses({"span": {"first": 3, "last": 2}}, "span", "first has to come before last"),
)
def model_validator_text(span: Span) -> str:
    return f"{span.first} {span.last}"
