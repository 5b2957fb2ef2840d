"""Names of tools: what a callable is called where nobody names it."""

from __future__ import annotations

import inspect
import re
from typing import Any, get_origin

from tools.conversion.callables.callables import underlying
from tools.core.errors import ToolDefinitionError

__all__ = ["tool_name"]

NAME = re.compile(r"[a-z0-9_]{1,64}")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Between two words of a name such as `getUser` or `HTTPGet`."""


def tool_name(function: Any, name: str | None) -> str:
    """The name of a tool.

    Args:
        function: A function; of an object with `__call__` the name is that of its class.
        name: Its name as chosen; by default the function's with underscores between its words.

    Raises:
        ToolDefinitionError: If the name does not fit the rule, `[a-z0-9_]{1,64}`.
    """
    found = _snake_case(_own_name(function)) if name is None else name
    if not NAME.fullmatch(found):
        raise ToolDefinitionError(
            f"{found!r} cannot be the name of a tool ({function!r}); give it a name of 1 to 64 "
            "small letters, digits and underscores: convert(..., name='…')."
        )
    return found


def _own_name(function: Any) -> str:
    called = function if hasattr(function, "__name__") else underlying(function)
    if getattr(called, "__name__", "") == "__call__":  # obj.__call__ is obj
        called = getattr(called, "__self__", called)
    if inspect.isclass(get_origin(called)):
        called = get_origin(called)
    return str(getattr(called, "__name__", type(called).__name__))


def _snake_case(name: str) -> str:
    plain = name.partition("[")[0]  # pydantic names a generic model `Box[int]`
    return HUMP.sub("_", plain).lower().strip("_")
