"""Callables that are no functions of the author's: partials, classes and builtins."""

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import anyio
from pydantic import BaseModel

from benchmarks.function_shapes.checks import (
    answers,
    gets,
    optional,
    refuses,
    required,
    takes,
    types,
)
from benchmarks.function_shapes.shape import Options, Theme
from benchmarks.function_shapes.subjects import Pair, Point, Service

Function = Callable[..., Any]

CONSTRUCTORS = Theme("callables")


class Account(BaseModel):
    """Somebody's account."""

    owner: str
    credit: float = 0.0


class Box:
    """Is no dataclass."""

    def __init__(self, size: int) -> None:
        """Makes it of a size."""
        self.size = size


@CONSTRUCTORS.shape_made(
    "a partial with a value by name",
    types("a", "integer"),
    required("a"),
    gets({"a": 1}, 11),
    options=Options(name="add_ten"),
)
def partial_named() -> Function:
    def add(a: int, b: int) -> int:
        return a + b

    return functools.partial(add, b=10)


@CONSTRUCTORS.shape_made(
    "a partial with a value in place",
    takes("b"),
    gets({"b": 1}, 9),
    options=Options(name="ten_less"),
)
def partial_positional() -> Function:
    def subtract(a: int, b: int) -> int:
        return a - b

    return functools.partial(subtract, 10)


@CONSTRUCTORS.shape_made(
    "a partial of an async function",
    required("a"),
    gets({"a": 1}, 11),
    options=Options(name="add_ten"),
)
def partial_async() -> Function:
    async def add(a: int, b: int) -> int:
        await anyio.lowlevel.checkpoint()
        return a + b

    return functools.partial(add, b=10)


@CONSTRUCTORS.shape_made(
    "a partial of a method", takes(), gets({}, "Bob greets Ann"), options=Options(name="greet_ann")
)
def partial_method() -> Function:
    return functools.partial(Service("Bob").greet, "Ann")


@CONSTRUCTORS.shape_made(
    "a dataclass as constructor",
    takes("x", "y"),
    optional("y"),
    gets({"x": 1}, {"x": 1, "y": 0}),
    refuses({"x": "far"}, "x"),
    options=Options(name="make_point"),
)
def dataclass_constructor() -> Function:
    return Point


@CONSTRUCTORS.shape_made(
    "a model as constructor",
    takes("owner", "credit"),
    gets({"owner": "Ann"}, {"owner": "Ann", "credit": 0.0}),
    refuses({"owner": "Ann", "credit": "much"}, "credit"),
    options=Options(name="open_account"),
)
def model_constructor() -> Function:
    return Account


@CONSTRUCTORS.shape_made(
    "another class as constructor",
    takes("size"),
    types("size", "integer"),
    answers(lambda _value: True, {"size": 3}),
    options=Options(name="make_box"),
)
def plain_constructor() -> Function:
    return Box


@CONSTRUCTORS.shape_made(
    "a class without a name given", takes("x", "y"), gets({"x": 1}, {"x": 1, "y": 0})
)
def unnamed_constructor() -> Function:
    return Point


@CONSTRUCTORS.shape_made("a builtin with a signature", takes("x"), gets({"x": 9}, 3.0))
def builtin() -> Function:
    return math.sqrt


@CONSTRUCTORS.shape_made(
    "a builtin with a signature and defaults",
    takes("base", "exp", "mod"),
    optional("mod"),
    gets({"base": 2, "exp": 5}, 32),
)
def builtin_with_defaults() -> Function:
    return pow


@CONSTRUCTORS.shape_made("a builtin without a signature", refused="signature")
def builtin_without_signature() -> Function:
    return builtins.max


@CONSTRUCTORS.shape_made(
    "a partial of a partial", gets({"c": 3}, "1 2 3"), options=Options(name="join_all")
)
def partial_of_partial() -> Function:
    def join(a: int, b: int, c: int) -> str:
        return f"{a} {b} {c}"

    return functools.partial(functools.partial(join, 1), b=2)


@CONSTRUCTORS.shape_made(
    "a partial of a class", gets({"x": 1}, {"x": 1, "y": 7}), options=Options(name="point_at_seven")
)
def partial_of_class() -> Function:
    return functools.partial(Point, y=7)


@CONSTRUCTORS.shape_made(
    "a named tuple as constructor",
    takes("left", "right"),
    gets({"left": 1}, [1, "r"], {"left": 1, "right": "r"}),
    options=Options(name="make_pair"),
)
def named_tuple_constructor() -> Function:
    return Pair


@CONSTRUCTORS.shape_made(
    "a class that inherits its constructor",
    takes("size"),
    answers(lambda _value: True, {"size": 3}),
    refuses({"size": "big"}, "size"),
    options=Options(name="make_crate"),
)
def inherited_constructor() -> Function:
    class Crate(Box):
        pass

    return Crate


@CONSTRUCTORS.shape_made(
    "an unbound method whose object has another name", refused="this|method|instance|bound"
)
def unbound_other_name() -> Function:
    class Door:
        def knock(this, who: str) -> str:  # noqa: N805  # the shape
            return who

    return Door.knock


@CONSTRUCTORS.shape(
    "a function with a parameter called self", takes("self"), gets({"self": "a"}, "a")
)
def self_parameter(self: str) -> str:
    return self


@CONSTRUCTORS.shape_made(
    "a partial of a callable instance",
    takes(),
    gets({}, "Bob calls Ann"),
    options=Options(name="call_ann"),
)
def partial_of_instance() -> Function:
    return functools.partial(Service("Bob"), "Ann")
