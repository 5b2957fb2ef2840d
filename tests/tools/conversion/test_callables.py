"""Callables: which can be tools, what they take, and why others cannot."""

from __future__ import annotations

import abc
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, Self

import pytest

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import RequestContext
from tools.core.errors import ToolDefinitionError

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]  # the shape


def three(a: int, b: int, c: int = 3) -> list[int]:
    return [a, b, c]


@contextlib.asynccontextmanager
async def entered(x: int) -> AsyncIterator[int]:
    yield x


class Toolbox:
    __slots__ = ("__dict__",)

    def method(self, x: int) -> int:
        return x

    def named(self: Toolbox, x: int) -> int:
        return x

    @classmethod
    def of_class(cls, x: int) -> int:
        return x

    @staticmethod
    def static(x: int) -> int:
        return x

    @functools.lru_cache  # noqa: B019  # the shape
    def cached(self, x: int) -> int:
        return x

    @property
    def value(self) -> int:
        return 1

    @functools.cached_property
    def kept(self) -> int:
        return 1

    @functools.singledispatchmethod
    def dispatched(self, x: int) -> int:
        return x

    @contextlib.contextmanager
    def entered(self, x: int) -> Iterator[int]:
        yield x

    five = functools.partialmethod(method, 5)

    def merge(self, x: int, other: Self | None = None) -> int:
        return x if other is None else 0


class Adder:
    """Adds."""

    def __call__(self, x: int) -> int:
        return x


class Decorator:
    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class Abstract(abc.ABC):
    @abc.abstractmethod
    def method(self, x: int) -> int: ...


class Shape(Protocol):
    def method(self, x: int) -> int: ...


def with_database(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(x: int) -> Any:
        return function("database", x)

    return run


def with_ticket(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, ticket: str, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if ticket == "t" else None

    return run


@with_database
def stored(database: str, x: int) -> int:
    return x


def unfound(x: Missing) -> None: ...


X = {"x": 1}
CALLABLES: dict[str, tuple[Any, list[str], list[str], dict[str, Any], Any]] = {
    "builtin method": ("a".upper, [], [], {}, "A"),
    "raw static method": (vars(Toolbox)["static"], ["x"], ["x"], X, 1),
    "cached method": (Toolbox().cached, ["x"], ["x"], X, 1),
    "partial method": (Toolbox().five, [], [], {}, 5),
    "method with Self": (Toolbox().merge, ["x"], ["x"], X, 1),
    "class as decorator": (
        Decorator(three),
        ["a", "b", "c"],
        ["a", "b"],
        {"a": 1, "b": 2},
        [1, 2, 3],
    ),
    "partial by name": (functools.partial(three, b=1), ["a", "b", "c"], ["a"], {"a": 2}, [2, 1, 3]),
    "partial with the object": (functools.partial(Toolbox.method, Toolbox()), ["x"], ["x"], X, 1),
    "partial that wraps": (
        functools.update_wrapper(functools.partial(three, 1), three),
        ["b", "c"],
        ["b"],
        {"b": 2},
        [1, 2, 3],
    ),
    "wrapper that gives one": (stored, ["x"], ["x"], X, 1),
    "wrapper that takes one more": (
        with_ticket(Toolbox.static),
        ["x", "ticket"],
        ["x", "ticket"],
        {"x": 1, "ticket": "t"},
        1,
    ),
}


@pytest.mark.parametrize("case", CALLABLES.values(), ids=CALLABLES)
async def test_a_callable_takes_what_a_call_of_it_takes(case: Any) -> None:
    function, names, required, raw, result = case
    spec = FunctionToMCP.convert(function, name="tool")
    assert list(spec.input_schema["properties"]) == names
    assert spec.input_schema.get("required", []) == required
    answer = await spec.invoke(spec.validate(raw), RequestContext())
    assert answer.structured == (result if isinstance(result, dict) else {"result": result})


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (5, "5 is not callable"),
        (None, "None is not callable"),
        (int, "int has no signature"),
        (str.upper, "str.upper is a method without its object"),
        (Toolbox.named, "Toolbox.named is a method without its object"),
        (Toolbox.cached, "Toolbox.cached is a method without its object"),
        (Abstract.method, "Abstract.method is a method without its object"),
        (Shape.method, "Shape.method is a method without its object"),
        (vars(Toolbox)["of_class"], "a classmethod outside its class: take it from the class"),
        (vars(Toolbox)["value"], "a property: its value is read, not called"),
        (vars(Toolbox)["kept"], "a property"),
        (vars(Toolbox)["five"], "a partialmethod outside its class"),
        (vars(Toolbox)["dispatched"], "a method outside its class"),
        (Toolbox.dispatched, "a method without its object"),
        (entered, "a context manager: it is entered"),
        (Toolbox().entered, "a context manager: it is entered"),
        (Abstract, "Abstract is abstract and has no instances"),
        (Shape, "Shape is abstract"),
        (
            functools.partial(three, 1, 2, 3, 4),  # type: ignore[call-arg]  # the shape
            "binds arguments that three does not take",
        ),
        (unfound, "names 'Missing', which cannot be found; .* not only under `if TYPE_CHECKING"),
    ],
)
def test_what_cannot_be_called_as_it_is_says_why(function: Any, reason: str) -> None:
    with pytest.raises(ToolDefinitionError, match=reason):
        FunctionToMCP.convert(function, name="tool")


def test_a_method_of_a_local_class_is_told_from_a_static_one() -> None:
    class Local:
        def method(this, x: int) -> int:  # noqa: N805  # the shape
            return x

        @staticmethod
        def static(x: int) -> int:
            return x

    with pytest.raises(ToolDefinitionError, match="a method without its object"):
        FunctionToMCP.convert(Local.method)
    assert FunctionToMCP.convert(Local.static).validate({"x": 1}) == {"x": 1}


def test_a_function_that_was_given_the_name_of_a_method_stays_a_function() -> None:
    def call(x: int) -> int:
        return x

    call.__qualname__ = "Client.call"
    assert FunctionToMCP.convert(call).validate({"x": 1}) == {"x": 1}


def test_an_annotation_that_is_no_type_is_refused() -> None:
    def odd(x: "not a type") -> None: ...  # type: ignore[valid-type]  # noqa: F722  # the shape

    with pytest.raises(ToolDefinitionError, match="odd has an annotation that is not a type"):
        FunctionToMCP.convert(odd)
