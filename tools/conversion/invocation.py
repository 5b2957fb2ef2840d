"""Runs a function with validated arguments, and converts what it yields or raises."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
from collections.abc import AsyncIterable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from io import IOBase
from opcode import opname
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from storage.errors import StorageError
from storage.index.bounded import clip
from tools.conversion.callables.callables import NOTHING, underlying
from tools.conversion.callables.signature import Signature
from tools.conversion.dependencies import Binding, Dependencies, OffTheLoop
from tools.conversion.results.attachments import is_attachment
from tools.conversion.results.jsonable import MOST_ITEMS, error_text, to_jsonable
from tools.conversion.results.output import Collected
from tools.core.client import ProgressReporter
from tools.core.context import RequestContext
from tools.core.errors import (
    InternalError,
    InvalidArgumentsError,
    ToolError,
    ToolFailedError,
    only_cause,
)
from tools.core.unicode_safety import encodable, visible_controls

OURS = str(Path(__file__).parent)
"""The directory of the code between a call and its function."""

AnswerT = TypeVar("AnswerT")
MadeT_co = TypeVar("MadeT_co", covariant=True)

BRIEF = 200
"""Maximum characters of an item that are reported."""


@dataclass(frozen=True, slots=True)
class _Raised:
    """An exception from the function's thread; some exceptions must not propagate there."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class _Pending:
    """A returned value that the event loop must finish, such as an awaitable."""

    value: Any


class Answering(Protocol[MadeT_co]):
    """Converts a function's return value to an answer."""

    def result(self, value: object) -> MadeT_co:
        """Returns the answer."""


class Invocation(Generic[AnswerT]):
    """Calls one function with validated arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        output: Answering[AnswerT],
        *,
        abandon: bool,
        is_ours: bool,
    ) -> None:
        """Stores how to run the function.

        With `abandon`, a cancelled call does not wait for a plain function. Otherwise it waits: a
        write could still land after the caller was told that it had not. Unexpected exceptions of
        our own functions stay unchanged: they are defects whose text callers never see.
        """
        self._function = function
        self._is_ours = is_ours
        self._output = output
        self._takes_arguments = bool(signature.given)
        self._parameters = signature.parameters
        self._binding = Binding(signature.parameters, is_open=signature.extra is not NOTHING)
        self._depends = any(each.provider for each in signature.parameters)
        self._abandon = abandon
        called = underlying(function)
        self._is_async = inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(
            getattr(called, "__call__", None)  # noqa: B004  # inspects its kind
        )

    async def __call__(self, values: dict[str, Any], context: RequestContext) -> AnswerT:
        """Calls the function once, with the values that `ToolSpec.validate` returned.

        A plain function runs entirely in a thread, including what it yields and returns. Awaitables
        are awaited, and iterators are collected.
        """
        dependencies = Dependencies(context) if self._depends else None
        raised: list[BaseException] = []
        call = functools.partial(self._call_function, values, context, raised)
        try:
            if dependencies is not None:
                return await dependencies.around(self._parameters, call)
            injected = {each.name: context for each in self._parameters if each.injected}
            return await call(injected, self._off_the_loop)
        except BaseException as error:
            by_function = any(error is each for each in raised)
            if not by_function and (dependencies is None or error is not dependencies.failure):
                raise
            of_arguments = by_function and self._takes_arguments
            judged = await self._caller_error(error, of_arguments=of_arguments)
            if judged is error:
                raise
            raise judged from error

    async def _call_function(
        self,
        values: dict[str, Any],
        context: RequestContext,
        raised: list[BaseException],
        injected: Mapping[str, Any],
        off_the_loop: OffTheLoop,
    ) -> AnswerT:
        """Returns the result, and appends the function's own exception to `raised`."""
        if self._binding.by_name:
            call = functools.partial(self._function, **values, **injected)
        else:
            positional, named = self._binding.arguments(values, injected)
            call = functools.partial(self._function, *positional, **named)
        if self._is_async:
            outcome: AnswerT | _Pending | _Raised = _Pending(call())
        else:
            outcome = await off_the_loop(self._run, call, context)
        while isinstance(outcome, _Pending | _Raised):
            try:
                value = await _settled(outcome, context.report_progress)
            except BaseException as error:
                raised.append(error)
                raise
            # Collecting an iterator, or converting a model of thousands of parts, takes time.
            if _is_stream(value) or isinstance(value, BaseModel):
                outcome = await off_the_loop(self._run, lambda value=value: value, context)
            else:
                outcome = self._answer(value)
        return outcome

    def _run(
        self, call: Callable[[], Any], context: RequestContext
    ) -> AnswerT | _Pending | _Raised:
        try:
            value = call()
            if _is_stream(value):
                value = _collect(value, context.report_progress)
        except BaseException as error:  # noqa: BLE001  # the function is not ours
            return _Raised(error)
        if _is_awaitable(value) or _is_async_stream(value):
            return _Pending(value)
        return self._answer(value)

    def _answer(self, value: Any) -> AnswerT:
        try:
            return self._output.result(value)
        except MemoryError:
            raise
        except ToolError as error:
            if error.__cause__ is not None:
                _drop_our_frames(error.__cause__)
            raise
        except Exception as error:
            if self._is_ours:
                raise
            _drop_our_frames(error)
            raise failure_of(error, self._function, about_arguments=False) from error

    async def _off_the_loop(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await anyio.to_thread.run_sync(
            functools.partial(function, *arguments), abandon_on_cancel=self._abandon
        )

    async def _caller_error(self, error: BaseException, *, of_arguments: bool) -> BaseException:
        """Returns the exception that the caller gets for an exception of the function."""
        await anyio.lowlevel.checkpoint_if_cancelled()
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            return error
        cause = only_cause(error)
        if isinstance(cause, ToolError | StorageError | MemoryError):
            return cause
        if self._is_ours:
            return self._caller_error_of_ours(error, of_arguments=of_arguments)
        _drop_our_frames(cause)
        return failure_of(cause, self._function, about_arguments=of_arguments)

    def _caller_error_of_ours(self, error: BaseException, *, of_arguments: bool) -> BaseException:
        """Does the same for our own functions: only their ValueErrors are written for callers."""
        cause = only_cause(error)
        if isinstance(cause, ValueError) and not isinstance(cause, DEFECTS):
            if of_arguments:
                return InvalidArgumentsError(error_text(cause) or "The tool refused the arguments.")
            return InternalError(error_text(cause) or "The tool failed.")
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            return error
        return RuntimeError(f"{type(error).__name__} was raised by a tool.")


def _drop_our_frames(error: BaseException) -> None:
    """Removes our frames from the traceback, so that the author sees only the function's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OURS):
        trace = trace.tb_next
    error.__traceback__ = trace


async def _settled(outcome: _Pending | _Raised, report: ProgressReporter) -> Any:
    """Awaits what a function returned, and collects it if it is an asynchronous iterator."""
    if isinstance(outcome, _Raised):
        raise outcome.error
    value = outcome.value
    while _is_awaitable(value):
        is_of_thread = isinstance(value, concurrent.futures.Future)
        value = await (asyncio.wrap_future(value) if is_of_thread else value)
    return await _collect_async(value, report) if _is_async_stream(value) else value


def _is_awaitable(value: object) -> bool:
    return inspect.isawaitable(value) or isinstance(value, concurrent.futures.Future)


def _is_stream(value: object) -> bool:
    """Returns whether a value is an iterator; open files are too, but are not collected."""
    return hasattr(type(value), "__next__") and not isinstance(value, IOBase)


def _is_async_stream(value: object) -> bool:
    return hasattr(type(value), "__aiter__")


def _collect(values: Iterator[Any], report: ProgressReporter) -> Collected:
    """Collects an iterator; must run in an anyio worker thread.

    It checks for cancellation before each item, and always closes the iterator so that its
    `finally` blocks run.
    """
    items: list[Any] = []
    try:
        while True:
            anyio.from_thread.check_cancelled()
            try:
                item = next(values)
            except StopIteration as end:
                return Collected(items, end.value)
            _take(item, items)
            anyio.from_thread.run(report, len(items), None, _brief(item))
    finally:
        close = getattr(values, "close", None)
        if callable(close):
            close()


async def _collect_async(values: AsyncIterable[Any], report: ProgressReporter) -> Collected:
    items: list[Any] = []
    iterator = aiter(values)
    try:
        async for item in iterator:
            _take(item, items)
            await report(len(items), None, _brief(item))
            # Neither the iterator nor the report may ever wait, so let other tasks run.
            await anyio.lowlevel.checkpoint()
    finally:
        close: Callable[[], Coroutine[Any, Any, None]] | None = getattr(iterator, "aclose", None)
        if close is not None:
            await close()
    return Collected(items)


def _take(item: object, items: list[Any]) -> None:
    if len(items) == MOST_ITEMS:
        raise ToolFailedError(f"The tool was stopped after {MOST_ITEMS:,} items.")
    items.append(item)


def _brief(item: Any) -> str:
    """Summarizes an item for progress reports, without rendering images."""
    to_text = getattr(type(item), "to_text", None)
    if is_attachment(type(item)):
        return type(item).__name__
    if isinstance(item, str):
        text = item
    elif callable(to_text):
        text = str(to_text(item))
    else:
        text = to_json(to_jsonable(item)).decode()
    return clip(text, BRIEF)


DEFECTS = (PydanticSerializationError, ValidationError)
"""ValueErrors about the function's own values rather than the caller's."""

LONGEST = 2_000
"""Maximum characters of an exception's text that the caller sees."""


def failure_of(
    error: BaseException, function: Callable[..., Any], *, about_arguments: bool
) -> ToolError:
    """Returns the tool error for an exception, with its type unless it rejects arguments.

    A ValueError raised by a `raise` statement in the function's module rejects the arguments. One
    raised elsewhere, such as by `int("x")`, counts as any other exception. With `about_arguments`,
    the function has arguments that it could reject.
    """
    text = error_text(error)
    text = clip(text, LONGEST)
    text = encodable(visible_controls(text))
    if about_arguments and isinstance(error, ValueError) and not isinstance(error, DEFECTS):
        module = getattr(underlying(function), "__module__", None)
        if _is_raised_in(module, error.__traceback__):
            return InvalidArgumentsError(text or "The tool refused the arguments.")
    return ToolFailedError(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _is_raised_in(module: str | None, trace: TracebackType | None) -> bool:
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    is_raise = opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
    return is_raise and trace.tb_frame.f_globals.get("__name__") == module
