"""Converts exceptions of an author's function to errors for the caller."""

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
"""ValueErrors about the function's own values rather than the caller's."""

LONGEST = 2_000
"""Maximum characters of an exception's text that the caller sees."""


def failure_of(
    error: BaseException, function: Callable[..., Any], *, about_arguments: bool
) -> ToolError:
    """Returns the tool error for an exception, with its type unless it rejects arguments.

    A ValueError raised by a `raise` statement in the function's module rejects the arguments. One
    raised elsewhere, such as by `int("x")`, counts as any other exception.

    Args:
        error: The exception.
        function: The function.
        about_arguments: Whether the function has arguments that it could reject.
    """
    text = _failure_text(error)
    if about_arguments and isinstance(error, ValueError) and not isinstance(error, DEFECTS):
        module = getattr(underlying(function), "__module__", None)
        if _is_raised_in(module, error.__traceback__):
            return InvalidArgumentsError(text or "The tool refused the arguments.")
    return ToolFailedError(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _failure_text(error: BaseException) -> str:
    """Returns the error's text, shortened and without terminal escapes or surrogates."""
    text = error_text(error)
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return encodable(visible_controls(shown))


def _is_raised_in(module: str | None, trace: TracebackType | None) -> bool:
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    is_raise = opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
    return is_raise and trace.tb_frame.f_globals.get("__name__") == module
