"""Runs a call in its turn and until its deadline, which pauses during questions.

Reads run in parallel, writes one after another.
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
"""Maximum nesting depth of calls: a function may call itself."""

PARALLEL_READS = 16
"""Maximum parallel reads of one scope and source."""

PARALLEL_UPSTREAM = 64
"""Maximum parallel calls of one other server, which schedules them itself and may ask the user."""

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
    """Runs a tool's work until its deadline.

    Args:
        name: The tool's name.
        seconds: Its time limit, not counting the time for questions to the user.
        context: The call's context.
        work: The tool's work, given the context of its run.
        meanwhile: A context entered while a question is open.
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
    """Rejects a call nested in too many others."""
    if context.depth > MOST_DEPTH:
        raise InvalidArgumentsError(
            f"{name} was not called: it is nested in {MOST_DEPTH} calls already. A tool that calls"
            " itself must stop at some point.",
        )


def may_last(
    spec: ToolSpec, arguments: Mapping[str, Any], find: Callable[[str], ToolSpec | None]
) -> bool:
    """Returns whether a call may become a job: a call of such a tool, or of a proxy for one."""
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
    """Hands out turns in the order of requests, so that no call starves.

    The reads of one scope and source share a number of slots; writes share one. A read never waits
    for a write: storage gives each read a consistent state, and files are replaced atomically.
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
        """Returns the turn of one call of this tool; the call runs within `async with`."""
        if spec.scope is ToolScope.MCP:
            return Turn(self._upstream[spec.source])
        if Effect.WRITE in spec.effects:
            return Turn(self._writes[spec.scope, spec.source])
        return Turn(self._reads[spec.scope, spec.source])


class Turn:
    """A call's slot, which it releases while it waits for calls of its own.

    No call holds a slot while it waits for another, so calls cannot deadlock.

    Args:
        place: The semaphore of the slots.
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
        """Releases the slot while the call waits for a nested call or a question.

        A call cancelled meanwhile does not take the slot again.
        """
        self._waiting += 1
        self._give_back()
        failure: Exception | None = None
        try:
            yield
        except Exception as error:  # noqa: BLE001  # raised again below; the call may catch it
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
            if self._waiting:  # another nested call began meanwhile
                self._give_back()

    def _give_back(self) -> None:
        if self._held:
            self._held = False
            self._place.release()
