"""Shapes of functions: schema, accepted and rejected arguments, a real call, result and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
from pydantic import BaseModel, ConfigDict, Field

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


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


def none_for_a_plain_type(x: int = None) -> bool:  # type: ignore[assignment]  # noqa: RUF013  # people write it
    return x is None


def enumeration(x: Colour = Colour.RED) -> Colour:
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
        optional, {"x": INTEGER}, [], {"x": None}, None, {"x": "q"}, "`x` is 'q'; send an integer."
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
        enumeration,
        {"x": {"$ref": "#/$defs/Colour", "default": "red"}},
        [],
        {"x": "blue"},
        "blue",
        {"x": "blu"},
        "`x` is 'blu'; send one of 'red', 'blue' (did you mean 'blue'?).",
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
        {"x": INTEGER, "y": {"default": 2, **INTEGER}, "z": {"default": 3, **INTEGER}},
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
        "`lock` is unknown; leave it out, or use one of `x`.",
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
