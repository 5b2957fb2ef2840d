"""The run of one call: until its deadline, which stands still while somebody thinks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

from tools.core.asking.deadline import PausableDeadline
from tools.core.context import RequestContext
from tools.core.errors import DeadlineError, InvalidArgumentsError
from tools.core.spec import ToolSpec

MOST_DEPTH = 8
"""Calls within calls within calls: a function may call itself."""

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

    Raises:
        DeadlineError: If it takes longer.
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
    """Refuses a call that is within too many others.

    Raises:
        InvalidArgumentsError: Because it is.
    """
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
