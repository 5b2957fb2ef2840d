"""What an author's function raised, as its caller is told of it."""

from __future__ import annotations

from collections.abc import Callable
from opcode import opname
from types import TracebackType
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from tools.conversion.callables.signature import underlying
from tools.conversion.results.jsonable import error_text
from tools.core.errors import InvalidArgumentsError, ToolError, ToolFailedError
from tools.core.invisible import encodable, visible_controls

DEFECTS = (PydanticSerializationError, ValidationError)
"""Errors that are ValueErrors, but tell of the function's own values and not of the caller's."""

LONGEST = 2_000
"""Characters of an exception's text that are told."""


def failure_of(
    error: BaseException, function: Callable[..., Any], *, about_arguments: bool
) -> ToolError:
    """Returns the failure that an exception stands for, its text and, unless it is said, its type.

    A ValueError that the function's module raises in so many words is its way to refuse arguments;
    one that comes of something else, such as `int("x")`, is like any other exception.

    Args:
        error: What it raised.
        function: The function.
        about_arguments: Whether it has any that it could refuse.
    """
    text = _told(error)
    if about_arguments and isinstance(error, ValueError) and not isinstance(error, DEFECTS):
        module = getattr(underlying(function), "__module__", None)
        if _is_raised_in(module, error.__traceback__):
            return InvalidArgumentsError(text or "The tool refused the arguments.")
    return ToolFailedError(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _told(error: BaseException) -> str:
    """Its text: bounded, without what steers a terminal, and such as JSON can have."""
    text = error_text(error)
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return encodable(visible_controls(shown))


def _is_raised_in(module: str | None, trace: TracebackType | None) -> bool:
    """Whether a `raise` statement of a module is the origin."""
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    is_raise = opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
    return is_raise and trace.tb_frame.f_globals.get("__name__") == module
