"""What a return type promises to a caller: all is awaited, and what is yielded is a list."""

from __future__ import annotations

import typing
from collections import abc
from concurrent.futures import Future
from io import BytesIO, IOBase, StringIO
from types import NoneType
from typing import Any, get_args, get_origin

import typing_extensions

from tools.conversion.callables.generics import bare, with_arguments
from tools.conversion.callables.signature import NOTHING
from tools.conversion.errors import UnsendableError
from tools.core.result import ToolResult

__all__ = ["gives_back", "promised", "says_nothing"]

UNTYPED = (
    NOTHING,
    Any,
    object,
    ToolResult,
    typing.NoReturn,
    typing.Never,
    typing_extensions.NoReturn,
    typing_extensions.Never,
)
"""Return types that say nothing of the structured result."""
ASIDE = {
    typing.Self: Any,
    typing.TypeGuard: bool,
    typing_extensions.Self: Any,
    typing_extensions.TypeGuard: bool,
    typing_extensions.TypeIs: bool,
}
"""Types for type checkers, and what they are when the program runs."""


def says_nothing(returns: Any) -> bool:
    """Whether a return type says nothing of the structured result."""
    return any(returns is untyped for untyped in UNTYPED)


def promised(annotation: Any) -> Any:
    """The type of what a caller gets.

    An awaitable is what it gives, an iterator of any kind a list of its items, and a generator that
    returns something besides an object of `items` and `returned`.

    Raises:
        UnsendableError: If it is an open file.
    """
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if isinstance(origin, type):
        if getattr(origin, "_is_protocol", False):
            return Any  # whatever has what it asks for is of that type
        if _is_file(origin):
            raise UnsendableError("an open file, which cannot be sent; return what is in it")
        if _is_awaitable(origin):
            return promised(arguments[-1]) if arguments else Any
        if _is_stream(origin):
            items = list[promised(arguments[0])] if arguments else list  # type: ignore[misc]  # a type of any form
            return _with_returned(items, arguments[2]) if gives_back(annotation) else items
    else:
        for kind, meaning in ASIDE.items():
            if origin is kind:
                return meaning
    return with_arguments(annotation, promised)


def gives_back(annotation: Any) -> bool:
    """Whether it is a generator that returns something besides what it yields."""
    annotation = bare(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(origin, type) and _is_awaitable(origin):
        return gives_back(arguments[-1])
    if origin is not abc.Generator or len(arguments) < 3:  # noqa: PLR2004  # yields, takes, returns
        return False
    return arguments[2] not in (None, NoneType)


def _with_returned(items: Any, returned: Any) -> Any:
    make: Any = typing_extensions.TypedDict
    return make("Yielded", {"items": items, "returned": promised(returned)})


def _is_awaitable(kind: type) -> bool:
    return hasattr(kind, "__await__") or issubclass(kind, Future)


def _is_stream(kind: type) -> bool:
    """Whether it is an iterator of any kind; the ABC of iterables mostly means one as well."""
    if issubclass(kind, IOBase):
        return False
    return kind is abc.Iterable or hasattr(kind, "__next__") or hasattr(kind, "__aiter__")


def _is_file(kind: type) -> bool:
    if issubclass(kind, BytesIO | StringIO):
        return False
    return issubclass(kind, IOBase | typing.IO)
