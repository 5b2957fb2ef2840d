"""Requests of clients: how their calls reach them, and outlive them."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from server.mcp.elicitation.forms import ClientApprover, ClientPeer, ClientSampler
from server.mcp.elicitation.questions import (
    ANSWER_SECONDS,
    Answer,
    Context,
    Relay,
    offers_forms,
    send,
)
from server.mcp.elicitation.rounds import Round
from server.mcp.elicitation.suspended import SuspendedRequest, SuspendedRun
from server.mcp.sessions import ClientRequests, KnownClient
from server.mcp.wire import asks_for_progress, forwarded, opted_level
from tools.core.calling.nested import Repetition
from tools.core.client import AnswersAwaitedError, ProgressReporter, Sampler, digest_of
from tools.core.context import Link, Origin, RequestContext
from tools.core.elicitation.asker import Capability
from tools.core.toolset import ToolSet
from tools.core.unicode_safety import encodable

DIGEST_CHARACTERS = 16
"""Length of the name of a call within a request."""

OutcomeT = TypeVar("OutcomeT")


class ClientRequest(Relay):
    """One request of a client, possibly resumed.

    Its round and suspended state are created on first use: most requests ask their client
    nothing.
    """

    def __init__(
        self,
        ctx: Context,
        params: types.InputResponseRequestParams,
        called: tuple[str, Mapping[str, Any]],
        requests: ClientRequests,
    ) -> None:
        self.ctx = ctx
        self.principal = requests.principal_of(ctx)
        self.conversation = requests.sessions.of(ctx, self.principal.identity)
        self.client = self.conversation.client
        self.is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.capabilities = able = self._capabilities()
        self.offers_forms = bool(able and able.elicitation and offers_forms(able.elicitation))
        self.offers_sampling = able is not None and able.sampling is not None
        self.meta = forwarded(ctx.meta)
        self.wants_progress = asks_for_progress(ctx.meta)
        # The error to answer with, if the client handles it itself.
        self.refusal: MCPError | None = None
        # Called with the name of a tool whose call may become a job.
        self.may_last: Callable[[str], None] = _ignore_tool
        self._params = params
        self._called = called
        self._requests = requests
        self._asked = 0  # questions open at its client while it waits
        self._is_kept = False
        if self.is_modern and (params.request_state or params.input_responses):
            self.suspended.take(self.this_round.answers)

    def _capabilities(self) -> types.ClientCapabilities | None:
        session = self.ctx.session
        if self.principal.is_delegated:  # it would approve its own calls
            return None
        return session.client_capabilities if self.is_modern or session.can_send_request else None

    @cached_property
    def this_round(self) -> Round:
        """Its answers, and the questions to ask before the retry."""
        return Round(self._params)

    @cached_property
    def suspended(self) -> SuspendedRequest:
        """Its state until its client retries it."""
        name, arguments = self._called
        identity = self.principal.identity
        digest = digest_of(f"{self.conversation.session_id}/{name}", arguments, identity)
        return self._requests.suspended.resume(self.this_round.suspension, identity, digest)

    @cached_property
    def repetition(self) -> Repetition | None:
        """The results of its earlier calls; None if it is never retried."""
        return Repetition(self.suspended.finished) if self.is_modern else None

    @property
    def has_suspended(self) -> bool:
        """Whether it has suspended state."""
        return "suspended" in vars(self)

    @property
    def retried_round(self) -> Round | None:
        """Its round, if it is retried with answers."""
        return self.this_round if self.is_retried else None

    @property
    def is_away(self) -> bool:
        """Whether its client was told to poll a job, and is asked when it does."""
        return self.has_suspended and self.suspended.is_away

    @property
    def level(self) -> types.LoggingLevel | None:
        """The minimum log level that its client wants; None if it set none."""
        return opted_level(self.ctx) if self.is_modern else self.note_client().level

    def waiting(self) -> Context | None:
        """Returns the request that waits for the call; None while its client is away."""
        return None if self.is_away else self.ctx

    def note_client(self) -> KnownClient:
        """Records its client, for questions of other servers."""
        return self._requests.clients.note(self.conversation.session_id, self.ctx)

    async def changed(self, uri: str) -> None:
        """Notifies subscribers that a resource changed."""
        await self._requests.changed(uri)

    @property
    def is_retried(self) -> bool:
        """Whether its client is asked by ending the request, and retries it with the answers."""
        able = self.capabilities
        return (
            self.is_modern
            and able is not None
            and any((able.elicitation, able.sampling, able.roots))
        )

    async def ask(
        self,
        questions: Mapping[str, types.InputRequest],
        *,
        seconds: float,
        state: str | None = None,
    ) -> Mapping[str, Answer]:
        """Asks its client.

        Until 2025-11-25 the questions are sent during the call, one after the other. From
        2026-07-28 on the call ends, and is retried with the answers. If the call became a job,
        the client is asked when it polls the job.
        """
        if self.is_away:
            return await self.suspended.ask_all(questions, are_named=False)
        if not self.is_modern:
            return {key: await self._send(each, seconds) for key, each in questions.items()}
        if questions.keys() - self.this_round.answers.keys():
            if state is not None:
                self.this_round.state = state
            for key, each in questions.items():
                self.this_round.ask(key, each)
            raise AnswersAwaitedError("The client must answer first.")
        return self.this_round.answers

    async def ask_one(self, question: types.InputRequest) -> Answer | None:
        """Returns its client's answer to a server's question; None if the client is gone."""
        if self.is_away:
            return await self.suspended.ask(question)
        return await self._send(question, ANSWER_SECONDS)

    async def _send(self, question: types.InputRequest, seconds: float) -> Answer:
        """Returns its client's answer during the request."""
        self._asked += 1
        try:
            return await send(
                self.ctx.session, question, related=self.ctx.request_id, seconds=seconds
            )
        finally:
            self._asked -= 1

    def name_of(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Names a call within the request; the name is the same on each retry."""
        said = digest_of(tool, arguments, self.principal.identity)
        return self.this_round.name_of(said[:DIGEST_CHARACTERS])

    async def carry(
        self,
        context: RequestContext,
        name: str,
        arguments: Mapping[str, Any],
        work: Callable[[RequestContext], Awaitable[OutcomeT]],
    ) -> OutcomeT:
        """Runs a function once, even if its client retries the call.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then retries the call; the
             function continues meanwhile.
        """
        if not self.is_retried:
            return await work(_function_context(context, self, context.report_progress))

        def begin(run: SuspendedRun[OutcomeT]) -> Callable[[], Awaitable[OutcomeT]]:
            return partial(work, _function_context(context, run, run.report))

        place = self.name_of(f"{context.place}/{name}", arguments)
        return await self.go_on(place, begin, context.report_progress)

    async def go_on(
        self,
        name: str,
        begin: Callable[[SuspendedRun[OutcomeT]], Callable[[], Awaitable[OutcomeT]]],
        report: ProgressReporter,
    ) -> OutcomeT:
        """Starts or resumes a call within the request, for a client that retries it.

        `begin` returns the work, which runs once.
        """
        run: SuspendedRun[OutcomeT] | None = self.suspended.runs.get(name)
        if run is None:
            run = self.suspended.runs[name] = SuspendedRun(self, self.suspended)
            self._requests.suspended.start(run, begin(run))
        outcome = await run.result(self.ctx, report, self.this_round)
        del self.suspended.runs[name]
        return outcome

    def note_missing(self, capability: Capability, message: str) -> None:
        """Records a missing client capability and the message given to the function."""
        if self.is_modern:
            self.suspended.missing[message] = capability

    def missing_capability(self, message: str) -> MCPError | None:
        """Returns the error for a failure caused by a missing client capability (SEP-2575).

        Returns None for other causes, and in protocols until 2025-11-25, which have no such error.
        """
        capability = self.suspended.missing.get(message) if self.has_suspended else None
        if capability is None:
            return None
        required: dict[str, Any] = {"requiredCapabilities": {capability: {}}}
        return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, encodable(message), required)

    def awaited(self) -> types.InputRequiredResult | None:
        """Returns the questions to answer before the retry; None if there are none.

        Keeps running calls until then.
        """
        if not ("this_round" in vars(self) and self.this_round.asks):
            return None
        self.this_round.suspension = self._requests.suspended.keep(self.suspended)
        self._is_kept = True
        return self.this_round.awaited

    @property
    def is_with_client(self) -> bool:
        """Whether the client has a question that it answers while it waits."""
        return bool(self._asked)

    def leave(self) -> SuspendedRequest:
        """Keeps further questions for the client that next polls the job; returns them."""
        self.suspended.is_away = True
        return self.suspended

    def end(self) -> None:
        """Cancels its running calls, unless its client will return for them."""
        if self.has_suspended and not self._is_kept:
            self.suspended.end()


def context_of(
    request: ClientRequest, *, sampler: Sampler | None = None, tool_set: ToolSet | None = None
) -> RequestContext:
    """Builds the context of a client's call; `sampler` is for clients without sampling."""
    return RequestContext(
        Origin(
            request.principal.identity,
            bound=request.principal.bound,
            session_id=request.conversation.session_id,
            client=request.client,
            tool_set=tool_set,
        ),
        Link(
            _progress_reporter(request.ctx),
            sampler=ClientSampler(request) if request.offers_sampling else sampler,
            approver=ClientApprover(request) if request.offers_forms else None,
            relay=request,
            carrier=request,
        ),
    )


def _function_context(
    context: RequestContext, relay: Relay, report: ProgressReporter
) -> RequestContext:
    """Returns the context of a function and its calls, none of which are retried."""
    link = Link(
        report,
        sampler=ClientSampler(relay) if relay.offers_sampling else context.sampler,
        approver=ClientApprover(relay) if relay.offers_forms else None,
        peer=ClientPeer(relay),
        relay=relay,
    )
    return replace(context, link=link)


def _progress_reporter(ctx: Context) -> ProgressReporter:
    """Returns a reporter to the client, which sends nothing without a progress token."""
    last = -math.inf

    async def report(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        if done > last:  # the protocol requires increasing values
            last = done
            await ctx.session.report_progress(done, total, message and encodable(message))

    return report


def _ignore_tool(_tool: str) -> None:
    pass
