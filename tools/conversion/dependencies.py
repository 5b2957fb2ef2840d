"""Passes a call's arguments and dependencies to a function, and cleans the dependencies up."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import math
import queue
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.abc import TaskGroup

from tools.conversion.callables.callables import NOTHING, underlying
from tools.conversion.callables.constructors import OMITTED
from tools.conversion.callables.signature import Parameter, Provider
from tools.core.context import RequestContext


class Binding:
    """Binds a call's values to a function's parameters; `is_open` if it has `**kwargs`.

    Attributes:
        by_name: Whether the values and what is injected are its keyword arguments as they are.
    """

    def __init__(self, parameters: Iterable[Parameter], *, is_open: bool) -> None:
        self._parameters = tuple(
            each
            for each in parameters
            if each.hidden or each.kind is not inspect.Parameter.VAR_KEYWORD
        )
        self.by_name = not is_open and all(map(_is_passed_by_name, self._parameters))

    def arguments(
        self, values: dict[str, Any], injected: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Returns the positional and keyword arguments of one call.

        The caller's values have public names, the injected ones the function's own.
        """
        if self.by_name:
            return [], {**values, **injected}
        rest = dict(values)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        by_place = any(_is_starred(each) and rest.get(each.alias) for each in self._parameters)
        for each in self._parameters:
            if _is_starred(each):
                positional += rest.pop(each.alias, ())
                continue
            placed = each.kind is each.kind.POSITIONAL_ONLY
            placed = placed or (by_place and each.kind is each.kind.POSITIONAL_OR_KEYWORD)
            value = _value(each, rest, injected, needed=placed)
            if value is OMITTED:
                continue
            if placed:
                positional.append(value)
            else:
                named[each.name] = value
        return positional, {**rest, **named}


def _value(
    parameter: Parameter, rest: dict[str, Any], injected: Mapping[str, Any], *, needed: bool
) -> Any:
    """Removes and returns a parameter's value from the rest; OMITTED if none is needed."""
    if parameter.injected:
        return injected[parameter.name]
    if parameter.alias in rest and not parameter.hidden:
        return rest.pop(parameter.alias)
    field = parameter.field
    if field is not None and not field.is_required():
        return field.get_default(call_default_factory=True, validated_data={})
    return parameter.default if needed and parameter.default is not NOTHING else OMITTED


def _is_starred(parameter: Parameter) -> bool:
    return parameter.kind is inspect.Parameter.VAR_POSITIONAL


def _is_passed_by_name(parameter: Parameter) -> bool:
    by_name = parameter.kind in (parameter.kind.POSITIONAL_OR_KEYWORD, parameter.kind.KEYWORD_ONLY)
    is_named = parameter.alias == parameter.name and not (parameter.hidden and parameter.field)
    return by_name and (parameter.injected or is_named)


AnsweredT = TypeVar("AnsweredT")
OffTheLoop = Callable[..., Awaitable[Any]]
"""Runs a function, with its arguments, in a thread."""

Answer = Callable[[Mapping[str, Any], OffTheLoop], Awaitable[AnsweredT]]

LEAVING_SECONDS = 10.0
"""Time limit for an asynchronous generator's cleanup in a cancelled call."""


class Dependencies:
    """The dependencies of one call.

    `failure` is the exception that a dependency raised itself, not because the call failed.
    """

    def __init__(self, context: RequestContext) -> None:
        self.failure: BaseException | None = None
        self._context = context
        self._stack = AsyncExitStack()
        self._shared: list[tuple[Any, Any]] = []

    async def around(self, parameters: Iterable[Parameter], answer: Answer[AnsweredT]) -> AnsweredT:
        """Resolves the dependencies, calls the function, and cleans up.

        `answer` calls the function with the injected values, and with a runner for plain functions:
        it uses the same thread as plain dependencies.
        """
        raised = None
        async with anyio.create_task_group() as group:
            self._thread = _Thread(group)
            try:
                async with self._stack:
                    answered = await answer(await self._inject(parameters), self._thread.run)
            except CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001  # the group would wrap it
                raised = error
            finally:
                self._thread.end()
        if raised is not None:
            raise raised
        return answered

    async def _inject(self, parameters: Iterable[Parameter]) -> dict[str, Any]:
        return {each.name: await self._value(each) for each in parameters if each.injected}

    async def _value(self, parameter: Parameter) -> Any:
        provider = parameter.provider
        if provider is None:
            return self._context
        if provider.is_shared:
            for function, value in self._shared:
                if function == provider.function:
                    return value
        value = await self._provide(provider)
        self._shared.append((provider.function, value))
        return value

    async def _provide(self, provider: Provider) -> Any:
        injected = await self._inject(provider.parameters)
        positional, named = Binding(provider.parameters, is_open=False).arguments({}, injected)
        function = provider.function
        call = functools.partial(function, *positional, **named)
        try:
            if _is(inspect.isasyncgenfunction, function):
                manager: Any = asynccontextmanager(call)()
                self._stack.push_async_exit(functools.partial(self._leave, manager.__aexit__))
                return await manager.__aenter__()
            if _is(inspect.isgeneratorfunction, function):
                manager = contextlib.contextmanager(call)()
                leave = functools.partial(self._thread.run, manager.__exit__)
                self._stack.push_async_exit(functools.partial(self._leave, leave))
                return await self._thread.run(manager.__enter__)
            if _is(inspect.iscoroutinefunction, function):
                return await call()
            value = await self._thread.run(call)
            return await value if inspect.isawaitable(value) else value
        except BaseException as error:
            self.failure = error
            raise

    async def _leave(
        self,
        leave: Callable[..., Any],
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Runs a generator's code after its yield; it can never swallow an error."""
        is_cancelled = isinstance(error, CancelledError)
        limit = LEAVING_SECONDS if is_cancelled else math.inf
        try:
            with anyio.move_on_after(limit, shield=is_cancelled):
                await leave(kind, error, trace)
        except BaseException as raised:
            if raised is not error:
                self.failure = raised
            raise


def _is(asks: Callable[[Any], bool], function: Any) -> bool:
    """Returns whether a function, or an object's `__call__`, is of a kind."""
    called = underlying(function)
    return asks(called) or (
        not inspect.isclass(called) and asks(getattr(called, "__call__", None))  # noqa: B004  # inspects its kind
    )


class _Thread:
    """The one thread for all plain functions of a call, so that they can share resources.

    A SQLite connection, for example, works only in the thread that opened it. The thread starts
    with the first function.
    """

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._work = queue.SimpleQueue[Callable[[], None] | None]()
        self._is_running = anyio.Event()

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Runs a function and waits for its result, even if the call is cancelled."""
        if not self._is_running.is_set():
            self._group.start_soon(self._serve)
            await self._is_running.wait()
        context = contextvars.copy_context()
        outcome: Future[Any] = Future()
        done = anyio.Event()

        def work() -> None:
            try:
                outcome.set_result(context.run(function, *arguments))
            except BaseException as error:  # noqa: BLE001  # the function is not ours
                outcome.set_exception(error)
            anyio.from_thread.run_sync(done.set)

        self._work.put(work)
        with anyio.CancelScope(shield=True):
            await done.wait()
        return outcome.result()

    def end(self) -> None:
        """Ends the thread after its queued work."""
        self._work.put(None)

    async def _serve(self) -> None:
        def loop() -> None:
            anyio.from_thread.run_sync(self._is_running.set)
            while (work := self._work.get()) is not None:
                work()

        limiter = anyio.CapacityLimiter(1)  # its own, since its work may need a shared thread
        await anyio.to_thread.run_sync(loop, limiter=limiter)
