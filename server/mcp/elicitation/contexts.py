"""Contexts of calls: what they know of their client, and how functions continue without it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext

from server.mcp.elicitation.client_requests import ClientRequest
from server.mcp.elicitation.forms import ClientApprover, ClientPeer
from server.mcp.elicitation.function_run import FunctionRun, round_of
from server.mcp.elicitation.suspended import SuspendedCall
from tools.core.client import NoReply, ProgressReporter, Prompt, Refusal, Reply, Sampler
from tools.core.context import Link, Origin, RequestContext, Work
from tools.core.result import ToolResult
from tools.core.toolset import ToolSet
from tools.core.unicode_safety import encodable

ANSWER_SECONDS = 120.0
"""Time for one answer; the user may have to agree first."""

MOST_AT_ONCE = 25
"""Questions in one round, which are sent in one message."""

_REFUSALS = frozenset({"refusal", "content_filter"})
"""Stop reasons of a refusing model; the protocol leaves the set open."""

_REJECTED = -1
"""Error code of clients whose user refused (2025-11-25, Sampling)."""


class ClientSampler:
    """Samples from the model of the calling client."""

    kind = "client"

    def __init__(self, request: ClientRequest | FunctionRun) -> None:
        this_round = round_of(request)
        self.at_once = 1 if this_round is None else MOST_AT_ONCE
        self.state = "" if this_round is None else this_round.state
        self._request = request

    async def ask(
        self, prompts: Sequence[Prompt], *, state: str
    ) -> list[Reply | Refusal | NoReply]:
        """Returns a reply to each prompt, or a refusal, or the reason for a missing reply."""
        questions = {_key(prompt): _question(prompt) for prompt in prompts}
        answers = await self._request.ask(questions, seconds=ANSWER_SECONDS, state=state)
        return [_reply(answers[_key(prompt)]) for prompt in prompts]


def _key(prompt: Prompt) -> str:
    """Names a question by its content, so that no answer is mistaken for another's."""
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
    """Builds the context of a client's call.

    Args:
        sampler: The model for clients without sampling.
        tool_set: The tools that the client may use; None allows all.
    """
    return RequestContext(
        Origin(
            request.principal.identity,
            bound=request.principal.bound,
            session_id=request.conversation.session_id,
            client=request.conversation.client,
            tool_set=tool_set,
        ),
        Link(
            _progress_reporter(request.ctx),
            sampler=ClientSampler(request) if request.offers_sampling else sampler,
            approver=ClientApprover(request) if request.offers_forms else None,
            relay=request,
            repetition=lambda: request.repetition,
            carrier=ClientCarrier(request),
        ),
    )


@dataclass(frozen=True, slots=True)
class ClientCarrier:
    """Keeps a request's calls running after its client disconnects."""

    request: ClientRequest

    def may_last(self, tool: str) -> None:
        """Records that a tool runs whose call may become a job."""
        self.request.may_last(tool)

    async def carry(
        self, context: RequestContext, name: str, arguments: Mapping[str, Any], work: Work
    ) -> ToolResult:
        """Runs a tool; see `run_once`."""
        return await run_once(self.request, context, name, arguments, work)


async def run_once(
    request: ClientRequest,
    context: RequestContext,
    name: str,
    arguments: Mapping[str, Any],
    work: Callable[[RequestContext], Awaitable[MadeT]],
) -> MadeT:
    """Runs a function once, even if its client retries the call.

    Raises:
        AnswersAwaitedError: If the client must answer first, and then retries the call; the
         function continues meanwhile.
    """
    if not request.comes_again:
        return await work(_function_context(context, FunctionRun(request), context.report_progress))

    def begin(call: SuspendedCall[MadeT]) -> Callable[[], Awaitable[MadeT]]:
        run = FunctionRun(request, call)
        return partial(work, _function_context(context, run, call.report))

    place = request.name_of(f"{context.place}/{name}", arguments)
    return await request.go_on(place, begin, context.report_progress)


def _function_context(
    context: RequestContext, run: FunctionRun, report: ProgressReporter
) -> RequestContext:
    """Returns the context of a function and its calls, none of which are retried."""
    link = Link(
        report,
        sampler=ClientSampler(run) if run.offers_sampling else context.sampler,
        approver=ClientApprover(run) if run.offers_forms else None,
        peer=ClientPeer(run),
        relay=run,
    )
    return replace(context, link=link)


def _progress_reporter(ctx: ServerRequestContext[Any, Any]) -> ProgressReporter:
    """Returns a reporter to the client, which sends nothing without a progress token."""
    last = -math.inf

    async def report(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        if done > last:  # the protocol requires increasing values
            last = done
            await ctx.session.report_progress(done, total, message and encodable(message))

    return report
