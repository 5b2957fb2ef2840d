"""The run of a function: from validated arguments to the tool's result."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import anyio.to_thread
from pydantic import ValidationError

from tools.core.context import RequestContext
from tools.core.conversion.output import Output
from tools.core.conversion.signature import Signature, underlying
from tools.core.errors import InvalidArgumentsError
from tools.core.spec import ToolResult

__all__ = ["Invocation"]


class Invocation:
    """One function, callable with what validation made of the arguments."""

    def __init__(
        self, function: Callable[..., Any], signature: Signature, output: Output, *, abandon: bool
    ) -> None:
        self._function = function
        self._signature = signature
        self._output = output
        self._abandon = abandon
        called = underlying(function)
        self._is_async = inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(
            getattr(called, "__call__", None)  # noqa: B004  # its kind is asked, not whether it is
        )

    async def __call__(self, values: dict[str, Any], context: RequestContext) -> ToolResult:
        """Runs it once."""
        positional, named = self._signature.bind(values, context)
        call = functools.partial(self._function, *positional, **named)
        try:
            value = await self._value(call)
        except ValidationError:  # the function's own mistake, although a ValueError
            raise
        except ValueError as error:
            raise InvalidArgumentsError(str(error) or "The tool refused the arguments.") from error
        return self._output.result(value)

    async def _value(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401  # whatever it returns
        if self._is_async:
            return await call()
        # A write that is abandoned could still land after the caller was told that it did not.
        value = await anyio.to_thread.run_sync(call, abandon_on_cancel=self._abandon)
        return await value if inspect.isawaitable(value) else value
