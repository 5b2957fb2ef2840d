"""Reads `Depends` declarations, ours and those of other frameworks."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from tools.conversion.callables.annotations import bare
from tools.conversion.callables.callables import callable_signature, underlying
from tools.core.errors import ToolDefinitionError

CLASSES = {"Dependant", "Depends", "Dependency"}
"""Class names of dependencies in FastAPI, fast_depends, Toolcrib and FastMCP."""
MANAGERS = {"asynccontextmanager.<locals>.helper", "contextmanager.<locals>.helper"}
"""The code of functions decorated as context managers; dependencies are managed anyway."""


class Declared(NamedTuple):
    """The dependency that a parameter declares.

    Attributes:
        function: Provides its value.
        is_shared: Whether all parameters of a call that depend on the function share one value.
    """

    function: Callable[..., Any]
    is_shared: bool


def declared(annotation: Any, default: Any) -> Declared | None:
    """Returns the `Depends` in a parameter's type or default, or None."""
    said = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    for each in (*said, default):
        if not CLASSES.isdisjoint(cls.__name__ for cls in type(each).__mro__):
            return Declared(_function(each, bare(annotation)), getattr(each, "use_cache", True))
    return None


def depended_on(functions: Iterable[Callable[..., Any]]) -> Iterator[Callable[..., Any]]:
    """Yields the functions that any of these depends on directly, unwrapped."""
    for function in functions:
        with contextlib.suppress(ToolDefinitionError):
            for each in callable_signature(_unmanaged(function)).parameters.values():
                if depends := declared(each.annotation, each.default):
                    yield inspect.unwrap(underlying(depends.function))


def _function(said: Any, annotation: Any) -> Callable[..., Any]:
    """Returns the function that provides the value; FastAPI's `Depends()` means the type itself."""
    function = getattr(said, "dependency", None) or getattr(said, "factory", None)
    if function is None and hasattr(said, "dependency"):
        function = annotation
    if not callable(function):
        raise ToolDefinitionError(
            f"{said!r} belongs to another framework; use Depends of tools.authoring."
        )
    function = _unmanaged(function)
    bindings = getattr(said, "bindings", {})
    return functools.partial(function, **bindings) if bindings else function


def _unmanaged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the generator inside a function decorated as a context manager."""
    is_manager = getattr(getattr(function, "__code__", None), "co_qualname", "") in MANAGERS
    return inspect.unwrap(function) if is_manager else function
