"""Callables: everything in Python that can be called, and how it is called."""

import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anyio

from benchmarks.function_shapes.checks import gets, progresses, refuses, says, takes, types
from benchmarks.function_shapes.shape import Options, Theme
from benchmarks.function_shapes.subjects import Point, Service

__all__ = ["CALLABLES"]

Function = Callable[..., Any]

PARTS = ["0", "1", "2"]

CALLABLES = Theme("callables")


class Later:
    """Is called asynchronously."""

    async def __call__(self, who: str) -> str:
        """Calls somebody later."""
        await anyio.lowlevel.checkpoint()
        return f"later {who}"


def logged(function: Function) -> Function:
    """Wraps as most decorators do."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # a decorator for all functions
        return function(*args, **kwargs)

    return wrapper


@CALLABLES.shape("an async function", gets({"a": 1}, 2), types("a", "integer"))
def coroutine() -> Function:
    async def add(a: int) -> int:
        await anyio.lowlevel.checkpoint()
        return a + 1

    return add


@CALLABLES.shape(
    "a generator",
    gets({"count": 3}, PARTS),
    progresses({"count": 3}, "0", "1", "2", times=3),
    gets({"count": 0}, []),
)
def generator() -> Function:
    def steps(count: int) -> Iterator[str]:
        for step in range(count):
            yield str(step)

    return steps


@CALLABLES.shape(
    "an async generator",
    gets({"count": 3}, PARTS),
    progresses({"count": 3}, "0", "1", "2", times=3),
)
def async_generator() -> Function:
    async def steps(count: int) -> AsyncIterator[str]:
        for step in range(count):
            await anyio.lowlevel.checkpoint()
            yield str(step)

    return steps


@CALLABLES.shape(
    "a generator of models that fails in the end", refuses({"count": 2}, "nothing is left")
)
def failing_generator() -> Function:
    def steps(count: int) -> Iterator[Point]:
        for step in range(count):
            yield Point(step)
        raise ValueError("nothing is left")

    return steps


@CALLABLES.shape(
    "a bound method", takes("who"), says("Greets somebody."), gets({"who": "Ann"}, "Bob greets Ann")
)
def bound_method() -> Function:
    return Service("Bob").greet


@CALLABLES.shape("a bound async method", takes("who"), gets({"who": "Ann"}, "Bob waves to Ann"))
def bound_async_method() -> Function:
    return Service("Bob").wave


@CALLABLES.shape("a classmethod", takes("who"), gets({"who": "Ann"}, "Service Ann"))
def class_method() -> Function:
    return Service.make


@CALLABLES.shape("a staticmethod", takes("a", "b"), gets({"a": 1, "b": 2}, 3))
def static_method() -> Function:
    return Service.add


@CALLABLES.shape("an unbound method", refused="self|method|instance|bound")
def unbound_method() -> Function:
    return Service.greet


@CALLABLES.shape(
    "an unbound method of a local class, whatever it calls its object",
    refused="self|method|instance|bound",
)
def local_unbound_method() -> Function:
    class Door:
        def knock(this, who: str) -> str:  # noqa: N805  # the shape
            return who

    return Door.knock


@CALLABLES.shape("a partialmethod of a class", refused="self|method|instance|bound")
def unbound_partialmethod() -> Function:
    class Door:
        def knock(self, who: str, times: int) -> str:
            return who * times

        twice = functools.partialmethod(knock, times=2)

    return Door.twice


@CALLABLES.shape("a singledispatchmethod", takes("what"), gets({"what": "a"}, "text a"))
def dispatching_method() -> Function:
    class Printer:
        @functools.singledispatchmethod
        def write(self, what: Any) -> str:  # noqa: ANN401  # the shape
            return f"thing {what}"

        @write.register
        def _(self, what: str) -> str:
            return f"text {what}"

    return Printer().write


@CALLABLES.shape("a context manager", refused="context manager|with")
def context_manager() -> Function:
    @contextlib.contextmanager
    def opened(path: str) -> Iterator[str]:
        yield path

    return opened


@CALLABLES.shape(
    "a callable instance",
    takes("who"),
    gets({"who": "Ann"}, "Bob calls Ann"),
    options=Options(name="call"),
)
def instance() -> Function:
    return Service("Bob")


@CALLABLES.shape(
    "an async callable instance",
    takes("who"),
    gets({"who": "Ann"}, "later Ann"),
    options=Options(name="call"),
)
def async_instance() -> Function:
    return Later()


@CALLABLES.shape(
    "wrapped by a decorator",
    takes("a", "b"),
    types("a", "integer"),
    says("Adds."),
    gets({"a": 1, "b": 2}, 3),
)
def wrapped() -> Function:
    @logged
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    return add


@CALLABLES.shape("an async function wrapped by a sync decorator", takes("a"), gets({"a": 1}, 2))
def wrapped_async() -> Function:
    @logged
    async def add(a: int) -> int:
        await anyio.lowlevel.checkpoint()
        return a + 1

    return add


@CALLABLES.shape("a generator wrapped by a decorator", gets({"count": 3}, PARTS))
def wrapped_generator() -> Function:
    @logged
    def steps(count: int) -> Iterator[str]:
        for step in range(count):
            yield str(step)

    return steps


@CALLABLES.shape("a sync function that returns an awaitable", gets({"a": 1}, 2))
def returns_awaitable() -> Function:
    async def later(a: int) -> int:
        await anyio.lowlevel.checkpoint()
        return a + 1

    def add(a: int) -> Awaitable[int]:
        return later(a)

    return add


@CALLABLES.shape("lru_cached", takes("a"), types("a", "integer"), gets({"a": 1}, 2))
def cached() -> Function:
    @functools.lru_cache
    def add(a: int) -> int:
        return a + 1

    return add


@CALLABLES.shape("singledispatch", takes("value"), gets({"value": 1}, "int"))
def dispatched() -> Function:
    @functools.singledispatch
    def kind(value: object) -> str:
        return type(value).__name__

    return kind


@CALLABLES.shape(
    "a lambda with a name", takes("a", "b"), gets({"a": 1, "b": 2}, 3), options=Options(name="add")
)
def named_lambda() -> Function:
    return lambda a, b: a + b


@CALLABLES.shape(
    "wrapped by a decorator that passes arguments by position only",
    takes("a", "b"),
    gets({"b": 2, "a": 1}, "1 2"),
)
def wrapped_by_position() -> Function:
    def add(a: int, b: int) -> str:
        return f"{a} {b}"

    @functools.wraps(add)
    def wrapper(*args: Any) -> str:  # noqa: ANN401  # the shape
        return add(*args)

    return wrapper


@CALLABLES.shape(
    "an async decorator of a sync function", takes("a"), types("a", "integer"), gets({"a": 1}, 2)
)
def wrapped_by_async() -> Function:
    def add(a: int) -> int:
        return a + 1

    @functools.wraps(add)
    async def wrapper(*args: Any, **kwargs: Any) -> int:  # noqa: ANN401  # the shape
        await anyio.lowlevel.checkpoint()
        return add(*args, **kwargs)

    return wrapper


@CALLABLES.shape("a generator of models", gets({"count": 2}, [{"x": 0, "y": 0}, {"x": 1, "y": 0}]))
def model_generator() -> Function:
    def points(count: int) -> Iterator[Point]:
        for x in range(count):
            yield Point(x)

    return points


@CALLABLES.shape("a generator without an annotation", gets({"count": 2}, [0, 1]))
def bare_generator() -> Function:
    def steps(count: int):  # type: ignore[no-untyped-def]  # noqa: ANN202  # the shape
        yield from range(count)

    return steps


@CALLABLES.shape("an async generator method", gets({"count": 2}, ["n0", "n1"]))
def generator_method() -> Function:
    class Counter:
        def __init__(self, name: str) -> None:
            self.name = name

        async def steps(self, count: int) -> AsyncIterator[str]:
            for step in range(count):
                await anyio.lowlevel.checkpoint()
                yield f"{self.name}{step}"

    return Counter("n").steps
