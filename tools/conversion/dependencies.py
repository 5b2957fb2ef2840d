"""The dependencies of one call: made before it, each once, and left after it."""

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

from tools.conversion.binding import Binding
from tools.conversion.callables.signature import Parameter, Provider, underlying
from tools.core.context import RequestContext

AnsweredT = TypeVar("AnsweredT")
OffTheLoop = Callable[..., Awaitable[Any]]
"""Runs a function, with its arguments, in a thread."""

Answer = Callable[[Mapping[str, Any], OffTheLoop], Awaitable[AnsweredT]]

LEAVING_SECONDS = 10.0
"""How long what an asynchronous generator does after its yield may take in a cancelled call."""


class Dependencies:
    """What the parameters of a call depend on.

    Attributes:
        failure: What a dependency raised of itself, and not because the call failed.
    """

    def __init__(self, context: RequestContext) -> None:
        self.failure: BaseException | None = None
        self._context = context
        self._stack = AsyncExitStack()
        self._shared: list[tuple[Any, Any]] = []

    async def around(self, parameters: Iterable[Parameter], answer: Answer[AnsweredT]) -> AnsweredT:
        """Makes what the parameters depend on, has the function answer, and leaves what was made.

        Args:
            parameters: Those of the function.
            answer: Calls it, with the values of the parameters that no caller gives, and with what
                runs plain functions: in the thread in which those run that it depends on.

        Raises:
            BaseException: Whatever a dependency or the function raises.
        """
        raised = None
        async with anyio.create_task_group() as group:
            self._thread = _Thread(group)
            try:
                async with self._stack:
                    answered = await answer(await self._injected(parameters), self._thread.run)
            except CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001  # the group would wrap it
                raised = error
            finally:
                self._thread.end()
        if raised is not None:
            raise raised
        return answered

    async def _injected(self, parameters: Iterable[Parameter]) -> dict[str, Any]:
        return {each.name: await self._value(each) for each in parameters if each.injected}

    async def _value(self, parameter: Parameter) -> Any:
        provider = parameter.provider
        if provider is None:
            return self._context
        if provider.is_shared:
            for function, value in self._shared:
                if function == provider.function:
                    return value
        value = await self._made(provider)
        self._shared.append((provider.function, value))
        return value

    async def _made(self, provider: Provider) -> Any:
        injected = await self._injected(provider.parameters)
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
        """Lets a generator do what it does after its yield; an error is never swallowed there."""
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
    """Whether a function, or an object that is called like one, is of a kind."""
    called = underlying(function)
    return asks(called) or (
        not inspect.isclass(called) and asks(getattr(called, "__call__", None))  # noqa: B004  # its kind is asked
    )


class _Thread:
    """The thread of all plain functions of a call: what one opens there, others may use.

    A connection to SQLite is for the thread that opened it only. It begins with the first function.
    """

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._is_running = anyio.Event()

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns what a function returns; it is waited for, even if the call is cancelled."""
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
        """Lets it end."""
        self._work.put(None)

    async def _serve(self) -> None:
        limiter = anyio.CapacityLimiter(1)  # it may wait for what needs another thread itself
        await anyio.to_thread.run_sync(self._loop, limiter=limiter)

    def _loop(self) -> None:
        anyio.from_thread.run_sync(self._is_running.set)
        while (work := self._work.get()) is not None:
            work()
