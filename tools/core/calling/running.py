"""The run of one call: in its turn, and until its deadline, which stands still meanwhile.

Reads run side by side, writes one after another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Self, TypeVar

import anyio

from tools.core.asking.deadline import PausableDeadline
from tools.core.context import RequestContext
from tools.core.errors import DeadlineError, InvalidArgumentsError
from tools.core.spec import Effect, ToolScope, ToolSpec

MOST_DEPTH = 8
"""Calls within calls within calls: a function may call itself."""

PARALLEL_READS = 16
"""Reads of one scope and source that run at the same time."""

PARALLEL_UPSTREAM = 64
"""Calls of one other server: it takes its own turns, and may ask a person in the middle of one."""

MadeT = TypeVar("MadeT")
Lending = Callable[[], AbstractAsyncContextManager[None]]


async def in_time(
    name: str,
    seconds: float,
    context: RequestContext,
    work: Callable[[RequestContext], Awaitable[MadeT]],
    *,
    meanwhile: Lending = nullcontext,
) -> MadeT:
    """Does what a tool does.

    Args:
        name: The tool's.
        seconds: How long it may take; while somebody thinks about a question does not count.
        context: The call's.
        work: What the tool does, with the context of its run.
        meanwhile: What the call is in while somebody thinks.
    """
    deadline = PausableDeadline(seconds, context.deadline)
    running = context.running(name, deadline, partial(_waiting, deadline, meanwhile))
    with deadline.scope:
        return await work(running)
    raise DeadlineError(
        f"{name} did not finish within its {seconds:g} seconds and was stopped.",
        next_actions=["Ask for less in one call, or call again later."],
    )


def check_depth(name: str, context: RequestContext) -> None:
    """Refuses a call that is within too many others."""
    if context.depth > MOST_DEPTH:
        raise InvalidArgumentsError(
            f"{name} was not called: it is within {MOST_DEPTH} calls already, each made by the one"
            " around it. A tool that calls itself has to end.",
        )


def may_last(
    spec: ToolSpec, arguments: Mapping[str, Any], find: Callable[[str], ToolSpec | None]
) -> bool:
    """Whether a call may go on as a job: of such a tool, or of one that passes a call on to one."""
    if not spec.passes_on:
        return spec.becomes_job
    several: Iterable[Any] = arguments.get("calls", ())
    names = [arguments.get("name", ""), *(each.name for each in several)]
    return any(found.becomes_job for found in map(find, names) if found is not None)


@asynccontextmanager
async def _waiting(deadline: PausableDeadline, meanwhile: Lending) -> AsyncIterator[None]:
    with deadline.paused():
        async with meanwhile():
            yield


class Turns:
    """Hands out turns in the order of asking, so that nobody starves.

    The reads of one scope and source of tools share a number of places, writes get one. A read
    never waits for a write: the storage gives each read a consistent state, and files are replaced
    in one step.
    """

    def __init__(self) -> None:
        self._reads: defaultdict[tuple[ToolScope, str], anyio.Semaphore] = defaultdict(
            lambda: anyio.Semaphore(PARALLEL_READS)
        )
        self._writes: defaultdict[tuple[ToolScope, str], anyio.Semaphore] = defaultdict(
            lambda: anyio.Semaphore(1)
        )
        self._upstream: defaultdict[str, anyio.Semaphore] = defaultdict(
            lambda: anyio.Semaphore(PARALLEL_UPSTREAM)
        )

    def of(self, spec: ToolSpec) -> Turn:
        """The turn of one call of this tool; the call runs within `async with`."""
        if spec.scope is ToolScope.MCP:
            return Turn(self._upstream[spec.source])
        if Effect.WRITE in spec.effects:
            return Turn(self._writes[spec.scope, spec.source])
        return Turn(self._reads[spec.scope, spec.source])


class Turn:
    """One call's hold on its place, which it gives back while it waits for calls of its own.

    So no call holds a place while it waits for another, and no circle of calls waits for itself.

    Args:
        place: What is held.
    """

    def __init__(self, place: anyio.Semaphore) -> None:
        self._place = place
        self._held = False
        self._waiting = 0
        self._retaking = anyio.Lock()

    async def __aenter__(self) -> Self:
        await self._place.acquire()
        self._held = True
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self._give_back()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Gives the place back for the time of a call or a question of this call's.

        A call that is cancelled meanwhile is at its end, and does not take it again.
        """
        self._waiting += 1
        self._give_back()
        failure: Exception | None = None
        try:
            yield
        except Exception as error:  # noqa: BLE001  # the call goes on with it, and may catch it
            failure = error
        finally:
            self._waiting -= 1
        await self._retake()
        if failure is not None:
            raise failure

    async def _retake(self) -> None:
        async with self._retaking:
            if self._held or self._waiting:
                return
            await self._place.acquire()
            self._held = True
            if self._waiting:  # another call of this call's began meanwhile
                self._give_back()

    def _give_back(self) -> None:
        if self._held:
            self._held = False
            self._place.release()
