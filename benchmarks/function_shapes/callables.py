"""Callables: everything in Python that can be called, and how it is called."""

import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anyio

from benchmarks.function_shapes.checks import gets, progresses, refuses, says, takes, types
from benchmarks.function_shapes.shape import Options, Theme
from benchmarks.function_shapes.subjects import Point, Service

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
async def coroutine(a: int) -> int:
    await anyio.lowlevel.checkpoint()
    return a + 1


@CALLABLES.shape(
    "a generator",
    gets({"count": 3}, PARTS),
    progresses({"count": 3}, "0", "1", "2", times=3),
    gets({"count": 0}, []),
)
def generator(count: int) -> Iterator[str]:
    for step in range(count):
        yield str(step)


@CALLABLES.shape(
    "an async generator",
    gets({"count": 3}, PARTS),
    progresses({"count": 3}, "0", "1", "2", times=3),
)
async def async_generator(count: int) -> AsyncIterator[str]:
    for step in range(count):
        await anyio.lowlevel.checkpoint()
        yield str(step)


@CALLABLES.shape(
    "a generator of models that fails in the end", refuses({"count": 2}, "nothing is left")
)
def failing_generator(count: int) -> Iterator[Point]:
    for step in range(count):
        yield Point(step)
    raise ValueError("nothing is left")


@CALLABLES.shape_made(
    "a bound method", takes("who"), says("Greets somebody."), gets({"who": "Ann"}, "Bob greets Ann")
)
def bound_method() -> Function:
    return Service("Bob").greet


@CALLABLES.shape_made(
    "a bound async method", takes("who"), gets({"who": "Ann"}, "Bob waves to Ann")
)
def bound_async_method() -> Function:
    return Service("Bob").wave


@CALLABLES.shape_made("a classmethod", takes("who"), gets({"who": "Ann"}, "Service Ann"))
def class_method() -> Function:
    return Service.make


@CALLABLES.shape_made("a staticmethod", takes("a", "b"), gets({"a": 1, "b": 2}, 3))
def static_method() -> Function:
    return Service.add


@CALLABLES.shape_made("an unbound method", refused="self|method|instance|bound")
def unbound_method() -> Function:
    return Service.greet


@CALLABLES.shape_made(
    "an unbound method of a local class, whatever it calls its object",
    refused="self|method|instance|bound",
)
def local_unbound_method() -> Function:
    class Door:
        def knock(this, who: str) -> str:  # noqa: N805  # the shape
            return who

    return Door.knock


@CALLABLES.shape_made("a partialmethod of a class", refused="self|method|instance|bound")
def unbound_partialmethod() -> Function:
    class Door:
        def knock(self, who: str, times: int) -> str:
            return who * times

        twice = functools.partialmethod(knock, times=2)

    return Door.twice


@CALLABLES.shape_made("a singledispatchmethod", takes("what"), gets({"what": "a"}, "text a"))
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
@contextlib.contextmanager
def context_manager(path: str) -> Iterator[str]:
    yield path


@CALLABLES.shape_made(
    "a callable instance",
    takes("who"),
    gets({"who": "Ann"}, "Bob calls Ann"),
    options=Options(name="call"),
)
def instance() -> Function:
    return Service("Bob")


@CALLABLES.shape_made(
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
@logged
def wrapped(a: int, b: int) -> int:
    """Adds."""
    return a + b


@CALLABLES.shape("an async function wrapped by a sync decorator", takes("a"), gets({"a": 1}, 2))
@logged
async def wrapped_async(a: int) -> int:
    await anyio.lowlevel.checkpoint()
    return a + 1


@CALLABLES.shape("a generator wrapped by a decorator", gets({"count": 3}, PARTS))
@logged
def wrapped_generator(count: int) -> Iterator[str]:
    for step in range(count):
        yield str(step)


@CALLABLES.shape_made("a sync function that returns an awaitable", gets({"a": 1}, 2))
def returns_awaitable() -> Function:
    async def later(a: int) -> int:
        await anyio.lowlevel.checkpoint()
        return a + 1

    def add(a: int) -> Awaitable[int]:
        return later(a)

    return add


@CALLABLES.shape("lru_cached", takes("a"), types("a", "integer"), gets({"a": 1}, 2))
@functools.lru_cache
def cached(a: int) -> int:
    return a + 1


@CALLABLES.shape("singledispatch", takes("value"), gets({"value": 1}, "int"))
@functools.singledispatch
def dispatched(value: object) -> str:
    return type(value).__name__


@CALLABLES.shape_made(
    "a lambda with a name", takes("a", "b"), gets({"a": 1, "b": 2}, 3), options=Options(name="add")
)
def named_lambda() -> Function:
    return lambda a, b: a + b


@CALLABLES.shape_made(
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


@CALLABLES.shape_made(
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
def model_generator(count: int) -> Iterator[Point]:
    for x in range(count):
        yield Point(x)


@CALLABLES.shape("a generator without an annotation", gets({"count": 2}, [0, 1]))
def bare_generator(count: int):  # type: ignore[no-untyped-def]  # the shape
    yield from range(count)


@CALLABLES.shape_made("an async generator method", gets({"count": 2}, ["n0", "n1"]))
def generator_method() -> Function:
    class Counter:
        def __init__(self, name: str) -> None:
            self.name = name

        async def steps(self, count: int) -> AsyncIterator[str]:
            for step in range(count):
                await anyio.lowlevel.checkpoint()
                yield f"{self.name}{step}"

    return Counter("n").steps
