"""Contexts: what a call is given of its client, and what a function is that goes on without it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext

from server.mcp.asking.client_peer import ClientPeer
from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.elicitation import ClientApprover
from server.mcp.asking.function_run import FunctionRun, round_of
from server.mcp.asking.suspended import SuspendedCall
from tools.core.client import NoReply, ProgressReporter, Prompt, Refusal, Reply, Sampler
from tools.core.context import RequestContext, Work
from tools.core.invisible import encodable
from tools.core.result import ToolResult
from tools.core.toolset import ToolSet

ANSWER_SECONDS = 120.0
"""How long a client may take for one answer; a person may have to agree to it first."""

MOST_AT_ONCE = 25
"""Questions of one round: their texts travel together."""

_REFUSALS = frozenset({"refusal", "content_filter"})
"""Stop reasons with which a model refuses; the protocol leaves the set open."""

_REJECTED = -1
"""The error with which clients say that their person refused (2025-11-25, Sampling)."""


class ClientSampler:
    """Asks the model of the client that makes a call."""

    kind = "client"

    def __init__(self, request: ClientRequest | FunctionRun) -> None:
        this_round = round_of(request)
        self.at_once = 1 if this_round is None else MOST_AT_ONCE
        self.state = "" if this_round is None else this_round.state
        self._request = request

    async def ask(
        self, prompts: Sequence[Prompt], *, state: str
    ) -> list[Reply | Refusal | NoReply]:
        """A reply to each prompt, who refused, or why there is none.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then makes the call again.
        """
        questions = {_key(prompt): _question(prompt) for prompt in prompts}
        answers = await self._request.ask(questions, seconds=ANSWER_SECONDS, state=state)
        return [_reply(answers[_key(prompt)]) for prompt in prompts]


def _key(prompt: Prompt) -> str:
    """Names a question by what it says, so that no answer is taken for that of another."""
    said = "\0".join((prompt.system, prompt.text, str(prompt.max_tokens)))
    return sha256(said.encode(errors="surrogatepass")).hexdigest()[:32]


def _question(prompt: Prompt) -> types.CreateMessageRequest:
    content = types.TextContent(text=encodable(prompt.text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=content)],
            system_prompt=prompt.system or None,
            max_tokens=prompt.max_tokens,
            include_context="none",
        )
    )


def _reply(answer: types.InputResponse | types.ErrorData) -> Reply | Refusal | NoReply:
    if isinstance(answer, types.ErrorData) and answer.code == _REJECTED:
        return Refusal("the user of the client")
    if not isinstance(answer, types.CreateMessageResult | types.CreateMessageResultWithTools):
        told = answer.message if isinstance(answer, types.ErrorData) else "another kind of result"
        return NoReply(f"the client answered with {told[:200]!r}")
    if answer.stop_reason in _REFUSALS:
        return Refusal("the model of the client")
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    text = "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))
    return Reply(text, answer.model) if text.strip() else NoReply("its message has no text")


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
