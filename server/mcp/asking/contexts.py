"""Contexts: what a call is given of its client, and what a function is that goes on without it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from mcp.server.context import ServerRequestContext

from server.mcp.asking.client_peer import ClientPeer
from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.elicitation import ClientApprover
from server.mcp.asking.function_run import FunctionRun
from server.mcp.asking.sampling import ClientSampler
from server.mcp.asking.suspended import SuspendedCall
from tools.core.client import ProgressReporter, Sampler
from tools.core.context import RequestContext, Work
from tools.core.invisible import encodable
from tools.core.result import ToolResult
from tools.core.toolset import ToolSet

MadeT = TypeVar("MadeT")


def context_of(
    request: ClientRequest, *, sampler: Sampler | None = None, tool_set: ToolSet | None = None
) -> RequestContext:
    """The context of a client's call.

    Args:
        request: The call.
        sampler: The way to a model for clients that offer none.
        tool_set: The tools that the client may find and call; None means all.
    """
    return RequestContext(
        request.principal.identity,
        _progress_reporter(request.ctx),
        tool_set=tool_set,
        bound=request.principal.bound,
        sampler=ClientSampler(request) if request.offers_sampling else sampler,
        approver=ClientApprover(request) if request.offers_forms else None,
        session_id=request.conversation.session_id,
        client=request.conversation.client,
        relay=request,
        repetition=lambda: request.repetition,
        carrier=ClientCarrier(request),
    )


@dataclass(frozen=True, slots=True)
class ClientCarrier:
    """Has the calls of a request go on while its client is away.

    Attributes:
        request: The request.
    """

    request: ClientRequest

    def may_last(self, tool: str) -> None:
        """Takes note that a tool runs whose call may be answered with a job."""
        self.request.may_last(tool)

    async def carry(
        self, context: RequestContext, name: str, arguments: Mapping[str, Any], work: Work
    ) -> ToolResult:
        """Runs a tool, as `carried` does."""
        return await carried(self.request, context, name, arguments, work)


async def carried(
    request: ClientRequest,
    context: RequestContext,
    name: str,
    arguments: Mapping[str, Any],
    work: Callable[[RequestContext], Awaitable[MadeT]],
) -> MadeT:
    """Runs a function, whose author does not expect it to be run twice.

    Args:
        request: In which it is asked for.
        context: What it would be given.
        name: What it is called.
        arguments: What the client gave.
        work: Runs it, in the context that it is to have.

    Raises:
        AnswersAwaitedError: If the client must answer first, and then makes the call again; the
            function goes on meanwhile.
    """
    if not request.comes_again:
        return await work(_of_function(context, FunctionRun(request)))

    def begin(call: SuspendedCall[MadeT]) -> Callable[[], Awaitable[MadeT]]:
        going_on = replace(context, report_progress=call.report)
        return partial(work, _of_function(going_on, FunctionRun(request, call)))

    place = request.name_of(f"{context.place}/{name}", arguments)
    return await request.go_on(place, begin, context.report_progress)


def _of_function(context: RequestContext, run: FunctionRun) -> RequestContext:
    """The context of a function, and of all that it calls: nothing of that is made again."""
    return replace(
        context,
        sampler=ClientSampler(run) if run.offers_sampling else context.sampler,
        approver=ClientApprover(run) if run.offers_forms else None,
        peer=ClientPeer(run),
        relay=run,
        repetition=lambda: None,
        carrier=None,
    )


def _progress_reporter(ctx: ServerRequestContext[Any, Any]) -> ProgressReporter:
    """Reports to the client, which hears nothing unless it sent a progress token."""
    last = -math.inf

    async def report(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        if done > last:  # the protocol wants each value greater than the one before
            last = done
            await ctx.session.report_progress(done, total, message and encodable(message))

    return report
