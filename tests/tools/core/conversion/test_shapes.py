"""Shapes of functions: schema, accepted and rejected arguments, a real call, result and errors."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict

import anyio
import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
from pydantic import BaseModel, ConfigDict, Field

from tools.core.context import RequestContext
from tools.core.errors import (
    InvalidArgumentsError,
)
from tools.core.function_to_mcp import FunctionToMCP


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Span:
    """A span of lines.

    Attributes:
        start: First line.
        end: Last line, or the end of the file.
    """

    start: int
    end: int | None = None


class Node(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    children: list[Node] = Field(default_factory=list)


class Options(TypedDict):
    depth: int
    follow: NotRequired[bool]


class Point(NamedTuple):
    x: int
    y: int


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str


SENTINEL: Any = object()


@dataclass
class Shape:
    """One shape of function and what must hold of it."""

    function: Callable[..., Any]
    properties: dict[str, Any]
    required: list[str]
    accepted: dict[str, Any]
    result: Any
    rejected: dict[str, Any]
    complaint: str
    name: str = field(default="shape")


def integer(x: int) -> int:
    return x + 1


def constrained(x: Annotated[int, Field(ge=1, le=9)]) -> int:
    return x


def default_field(x: int = Field(5, ge=1, description="count")) -> int:
    return x


def optional(x: int | None = None) -> int | None:
    return x


def old_optional(x: Optional[str]) -> str | None:  # noqa: UP045  # the old spelling is the shape
    return x


def none_for_a_plain_type(x: int = None) -> bool:  # type: ignore[assignment]  # noqa: RUF013  # people write it
    return x is None


def union(x: int | list[str]) -> str:
    return type(x).__name__


def literal(x: Literal["a", "b"] = "a") -> str:
    return x


def optional_literal(x: Literal["a", "b", None] = None) -> str | None:  # noqa: PYI061  # the shape
    return x


def enumeration(x: Colour = Colour.RED) -> Colour:
    return x


def integer_enumeration(x: Level) -> Level:
    return x


def listing(x: list[int]) -> list[int]:
    return sorted(x)


def mapping(x: dict[str, int]) -> dict[str, int]:
    return x


def unique(x: set[int]) -> set[int]:
    return x


def pair(x: tuple[int, str]) -> tuple[int, str]:
    return x


def moment(x: datetime) -> datetime:
    return x


def path(x: Path = Path()) -> str:
    return x.as_posix()


def data_class(x: Span) -> Span:
    return x


def typed_dict(x: Options) -> Options:
    return x


def named_tuple(x: Point) -> int:
    return x.x + x.y


def recursive(x: Node) -> str:
    return ",".join(child.name for child in x.children)


def discriminated(x: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
    return x.kind


def unannotated(x, y=2):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # the shape
    return [x, y]


def pydantic_names(schema: int, json: int, copy: int, model_dump: int, _x: int) -> int:
    return schema + json + copy + model_dump + _x


def positional_only(x: int, y: int = 2, /, *, z: int = 3) -> list[int]:
    return [x, y, z]


def sentinel_default(x: str = SENTINEL) -> bool:
    return x is SENTINEL


def mutable_default(x: list[int] = [1]) -> list[int]:  # noqa: B006  # the shape
    return x


def opaque_default(x: int, lock: threading.Lock = SENTINEL) -> bool:
    return lock is SENTINEL


def endless_default(x: float = float("inf")) -> bool:
    return x > 1


async def asynchronous(x: int) -> int:
    await anyio.lowlevel.checkpoint()
    return x * 2


class Toolbox:
    def method(self, x: int) -> int:
        return x

    @classmethod
    def of_class(cls, x: int) -> str:
        return cls.__name__ * x

    @staticmethod
    def static(x: int) -> int:
        return x


class Adder:
    """Adds."""

    def __call__(self, x: int) -> int:
        return x + 10


@functools.wraps(integer)
def wrapped(*args: Any, **kwargs: Any) -> int:
    return integer(*args, **kwargs) * 2


INTEGER = {"type": "integer"}
X_INTEGER: dict[str, Any] = {
    "properties": {"x": INTEGER},
    "required": ["x"],
    "accepted": {"x": 1},
    "rejected": {"x": "one"},
    "complaint": "`x` is 'one'; send an integer.",
}

SHAPES = [
    Shape(integer, **X_INTEGER, result=2),
    Shape(integer, **{**X_INTEGER, "accepted": {"x": "5"}}, result=6, name="number_as_text"),
    Shape(asynchronous, **X_INTEGER, result=2),
    Shape(Toolbox().method, **X_INTEGER, result=1),
    Shape(Toolbox.of_class, **X_INTEGER, result="Toolbox"),
    Shape(Toolbox.static, **X_INTEGER, result=1),
    Shape(Adder(), **X_INTEGER, result=11),
    Shape(wrapped, **X_INTEGER, result=4),
    Shape(functools.lru_cache(integer), **X_INTEGER, result=2, name="cached"),
    Shape(functools.partial(asynchronous), **X_INTEGER, result=2, name="partial_async"),
    Shape(
        functools.partial(positional_only, 7),
        {"y": {"default": 2, **INTEGER}, "z": {"default": 3, **INTEGER}},
        [],
        {"z": 1},
        [7, 2, 1],
        {"x": 1},
        "`x` is unknown; leave it out; known are `y`, `z`.",
        name="partial_positional",
    ),
    Shape(
        constrained,
        {"x": {"maximum": 9, "minimum": 1, **INTEGER}},
        ["x"],
        {"x": 9},
        9,
        {"x": 10},
        "`x` is 10; send an integer from 1 to 9.",
    ),
    Shape(
        default_field,
        {"x": {"default": 5, "minimum": 1, "description": "count", **INTEGER}},
        [],
        {},
        5,
        {"x": 0},
        "`x` is 0; send an integer of at least 1.",
    ),
    Shape(
        optional,
        {"x": INTEGER},
        [],
        {"x": None},
        None,
        {"x": "q"},
        "`x` is 'q'; send an integer.",
    ),
    Shape(
        old_optional,
        {"x": {"type": "string"}},
        [],
        {"x": "null"},
        "null",
        {"x": 1},
        "`x` is 1; send a string.",
    ),
    Shape(
        none_for_a_plain_type,
        {"x": INTEGER},
        [],
        {"x": None},
        True,  # noqa: FBT003  # the result
        {"x": []},
        "`x` is []; send an integer.",
    ),
    Shape(
        union,
        {"x": {"anyOf": [INTEGER, {"items": {"type": "string"}, "type": "array"}]}},
        ["x"],
        {"x": '["a"]'},
        "list",
        {"x": {}},
        "`x` is {}; send an integer or a list, each item a string.",
    ),
    Shape(
        literal,
        {"x": {"default": "a", "enum": ["a", "b"], "type": "string"}},
        [],
        {"x": "b"},
        "b",
        {"x": "c"},
        "`x` is 'c'; send one of 'a', 'b'.",
    ),
    Shape(
        optional_literal,
        {"x": {"enum": ["a", "b"], "type": "string"}},
        [],
        {},
        None,
        {"x": 1},
        "`x` is 1; send one of 'a', 'b'.",
    ),
    Shape(
        enumeration,
        {"x": {"$ref": "#/$defs/Colour", "default": "red"}},
        [],
        {"x": "blue"},
        "blue",
        {"x": "blu"},
        "`x` is 'blu'; send one of 'red', 'blue' (did you mean 'blue'?).",
    ),
    Shape(
        integer_enumeration,
        {"x": {"$ref": "#/$defs/Level"}},
        ["x"],
        {"x": 2},
        2,
        {"x": 3},
        "`x` is 3; send one of 1, 2.",
    ),
    Shape(
        listing,
        {"x": {"items": INTEGER, "type": "array"}},
        ["x"],
        {"x": "[3, 1]"},
        [1, 3],
        {"x": [1, "b"]},
        "`x[1]` is 'b'; send an integer.",
    ),
    Shape(
        mapping,
        {"x": {"additionalProperties": INTEGER, "type": "object"}},
        ["x"],
        {"x": '{"a": 1}'},
        {"a": 1},
        {"x": {"a": "b"}},
        "`x.a` is 'b'; send an integer.",
    ),
    Shape(
        unique,
        {"x": {"items": INTEGER, "type": "array", "uniqueItems": True}},
        ["x"],
        {"x": [1, 1]},
        [1],
        {"x": 3},
        "`x` is 3; send a list, each item an integer.",
    ),
    Shape(
        pair,
        {
            "x": {
                "maxItems": 2,
                "minItems": 2,
                "prefixItems": [INTEGER, {"type": "string"}],
                "type": "array",
            }
        },
        ["x"],
        {"x": [1, "a"]},
        [1, "a"],
        {"x": [1]},
        "`x[1]` is missing; add a string.",
    ),
    Shape(
        moment,
        {"x": {"format": "date-time", "type": "string"}},
        ["x"],
        {"x": "2026-03-31T12:00:00Z"},
        "2026-03-31T12:00:00Z",
        {"x": "soon"},
        "`x` is 'soon'; send a date and time such as '2026-03-31T12:00:00Z'.",
    ),
    Shape(
        path,
        {"x": {"default": ".", "format": "path", "type": "string"}},
        [],
        {"x": "a/b"},
        "a/b",
        {"x": 1},
        "`x` is 1; send a string (path).",
    ),
    Shape(
        data_class,
        {"x": {"$ref": "#/$defs/Span"}},
        ["x"],
        {"x": {"start": 1}},
        {"start": 1, "end": None},
        {"x": {"start": "one"}},
        "`x.start` is 'one'; send an integer.",
    ),
    Shape(
        typed_dict,
        {"x": {"$ref": "#/$defs/Options"}},
        ["x"],
        {"x": {"depth": 1}},
        {"depth": 1},
        {"x": {"follow": True}},
        "`x.depth` is missing; add an integer.",
    ),
    Shape(
        recursive,
        {"x": {"$ref": "#/$defs/Node"}},
        ["x"],
        {"x": {"name": "a", "children": [{"name": "b"}]}},
        "b",
        {"x": {"name": "a", "children": [{"nam": "b"}]}},
        "`x.children[0].nam` is unknown; did you mean `x.children[0].name`?",
    ),
    Shape(
        discriminated,
        {"x": {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}},
        ["x"],
        {"x": {"kind": "dog", "bark": "wau"}},
        "dog",
        {"x": {"kind": "cat", "lives": "nine"}},
        "`x.lives` is 'nine'; send an integer.",
    ),
    Shape(
        unannotated,
        {"x": {}, "y": {"default": 2}},
        ["x"],
        {"x": None},
        [None, 2],
        {},
        "`x` is missing; add a value.",
    ),
    Shape(
        pydantic_names,
        dict.fromkeys(["schema", "json", "copy", "model_dump", "_x"], INTEGER),
        ["schema", "json", "copy", "model_dump", "_x"],
        {"schema": 1, "json": 2, "copy": 3, "model_dump": 4, "_x": 5},
        15,
        {"schema": 1, "json": 2, "copy": 3, "model_dump": 4, "_x": None},
        "`_x` is None; send an integer.",
    ),
    Shape(
        positional_only,
        {
            "x": INTEGER,
            "y": {"default": 2, **INTEGER},
            "z": {"default": 3, **INTEGER},
        },
        ["x"],
        {"x": 1, "z": 5},
        [1, 2, 5],
        {"x": 1, "y": "b"},
        "`y` is 'b'; send an integer.",
    ),
    Shape(
        sentinel_default,
        {"x": {"type": "string"}},
        [],
        {},
        True,  # noqa: FBT003  # the result
        {"x": 1},
        "`x` is 1; send a string.",
    ),
    Shape(
        mutable_default,
        {"x": {"default": [1], "items": INTEGER, "type": "array"}},
        [],
        {"x": None},
        [1],
        {"x": "1,2"},
        "`x` is '1,2'; send a list, each item an integer.",
    ),
    Shape(
        opaque_default,
        {"x": INTEGER},
        ["x"],
        {"x": 1},
        True,  # noqa: FBT003  # the result
        {"x": 1, "lock": 1},
        "`lock` is unknown; leave it out; known are `x`.",
    ),
    Shape(
        endless_default,
        {"x": {"type": "number"}},
        [],
        {},
        True,  # noqa: FBT003  # the result
        {"x": "much"},
        "`x` is 'much'; send a number.",
    ),
]


def _convert(shape: Shape) -> Any:
    return FunctionToMCP.convert(shape.function, name=shape.name)


def _label(shape: Shape) -> str:
    named = getattr(shape.function, "__name__", type(shape.function).__name__)
    return named if shape.name == "shape" else shape.name


@pytest.mark.parametrize("shape", SHAPES, ids=_label)
def test_a_shape_has_its_schema(shape: Shape) -> None:
    schema = _convert(shape).input_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["properties"] == shape.properties
    assert schema.get("required", []) == shape.required
    assert schema["additionalProperties"] is False


@pytest.mark.anyio
@pytest.mark.parametrize("shape", SHAPES, ids=_label)
async def test_a_shape_is_called_and_its_result_fits_its_schema(shape: Shape) -> None:
    spec = _convert(shape)
    result = await spec.invoke(spec.validate(shape.accepted), RequestContext())
    expected = shape.result if isinstance(shape.result, dict) else {"result": shape.result}
    assert result.structured == expected
    if spec.output_schema is not None:
        assert spec.output_schema["type"] == "object"
        jsonschema.validate(result.structured, spec.output_schema)


@pytest.mark.parametrize("shape", SHAPES, ids=_label)
def test_a_shape_refuses_with_the_place_the_value_and_the_remedy(shape: Shape) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        _convert(shape).validate(shape.rejected)
    assert f"\n- {shape.complaint}" in caught.value.message
