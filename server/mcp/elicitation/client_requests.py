"""Requests of clients, and the way back from tools and servers to those clients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from server.mcp.elicitation.channels import ANSWER_SECONDS, BackChannel, Channel, send
from server.mcp.elicitation.rounds import Round
from server.mcp.elicitation.suspended import SuspendedCall, SuspendedRequest, SuspendedRequests
from server.mcp.sessions import (
    KnownClient,
    KnownClients,
    Principal,
    Sessions,
    offers_forms,
    principal_of,
)
from server.mcp.wire import asks_for_progress, forwarded, opted_level
from storage.models import Identity
from tools.core.calling.call import PausableDeadline
from tools.core.calling.nested import Repetition
from tools.core.client import AnswersAwaitedError, ProgressReporter, digest_of
from tools.core.unicode_safety import encodable

FIRST_MESSAGES = frozenset({"notifications/initialized", "server/discover"})
"""Messages that announce a client's capabilities before its first call."""

GONE = types.ErrorData(code=types.INVALID_REQUEST, message="The client has disconnected.")

DIGEST_CHARACTERS = 16
"""Length of the name of a call within a request."""

Changed = Callable[[str], Awaitable[None]]
Context = ServerRequestContext[Any, Any]
OutcomeT = TypeVar("OutcomeT")


class RootsListener(Protocol):
    """Receives notifications that a client's directories changed."""

    async def roots_changed(self) -> None:
        """Forwards the change."""


class ClientRequest:
    """One request of a client, possibly resumed.

    Its round and suspended state are created on first use: most requests ask their client
    nothing.

    Attributes:
        principal: The authenticated identity.
        is_modern: Whether its client is asked by ending the call (protocol 2026-07-28).
        refusal: The error to answer with, if the client handles it itself.
        may_last: Called with the name of a tool whose call may become a job.
        asked: Number of questions open at its client while it waits.
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
        self.is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.refusal: MCPError | None = None
        self.may_last: Callable[[str], None] = _ignore_tool
        self.asked = 0
        self._params = params
        self._called = called
        self._requests = requests
        self._is_kept = False
        if self.is_modern and (params.request_state or params.input_responses):
            self.suspended.take(self.this_round.answers)

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
        return self.all_suspended.resume(self.this_round.suspension, identity, digest)

    @cached_property
    def repetition(self) -> Repetition | None:
        """The results of its earlier calls; None if it is never retried."""
        return Repetition(self.suspended.finished) if self.is_modern else None

    @property
    def changed(self) -> Changed:
        """Notifies subscribers that a resource changed."""
        return self._requests.changed

    @property
    def all_suspended(self) -> SuspendedRequests:
        """The calls that continue while their clients are away."""
        return self._requests.suspended

    def note_client(self) -> KnownClient:
        """Returns its client, and records it for questions of other servers."""
        return self._requests.client_of(self.ctx)

    @property
    def level(self) -> types.LoggingLevel | None:
        """The minimum log level that its client wants; None if it set none."""
        return opted_level(self.ctx) if self.is_modern else self.note_client().level

    @property
    def wants_progress(self) -> bool:
        """Whether its client wants progress reports."""
        return asks_for_progress(self.ctx.meta)

    @property
    def meta(self) -> dict[str, Any]:
        """The metadata that its client sent, as forwarded to servers."""
        return forwarded(self.ctx.meta)

    @property
    def can_be_asked(self) -> bool:
        """Whether its client can be asked anything."""
        capabilities = self.capabilities
        return capabilities is not None and any(
            (capabilities.elicitation, capabilities.sampling, capabilities.roots)
        )

    @property
    def comes_again(self) -> bool:
        """Whether its client is asked by ending the request, and retries it with the answers."""
        return self.is_modern and self.can_be_asked

    @property
    def offers_forms(self) -> bool:
        """Whether its client can show a form to its user."""
        return self.capabilities is not None and offers_forms(self.capabilities.elicitation)

    @property
    def offers_sampling(self) -> bool:
        """Whether its client offers sampling."""
        return self.capabilities is not None and self.capabilities.sampling is not None

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        """What its client can be asked at present; None if nothing.

        A delegated agent is never asked: it would approve its own calls.
        """
        if self.principal.is_delegated:
            return None
        can_ask = self.is_modern or self.ctx.session.can_send_request
        return self.ctx.session.client_capabilities if can_ask else None

    async def ask(
        self,
        questions: Mapping[str, types.InputRequest],
        *,
        seconds: float,
        state: str | None = None,
    ) -> Mapping[str, types.InputResponse | types.ErrorData]:
        """Asks its client.

        Until 2025-11-25 the questions are sent during the call, one after the other. From
        2026-07-28 on the call ends, and is retried with the answers. If the call became a job,
        the client is asked when it polls the job.

        Args:
            questions: The questions, by keys that are the same on each retry.
            state: State to return on the retry; None keeps the current state.
        """
        if self.is_away:
            return await self._ask_later(questions)
        if not self.is_modern:
            return {key: await self._send(each, seconds) for key, each in questions.items()}
        if questions.keys() - self.this_round.answers.keys():
            if state is not None:
                self.this_round.state = state
            for key, each in questions.items():
                self.this_round.ask(key, each)
            raise AnswersAwaitedError("The client must answer first.")
        return self.this_round.answers

    async def _ask_later(
        self, questions: Mapping[str, types.InputRequest]
    ) -> Mapping[str, types.InputResponse | types.ErrorData]:
        answers: dict[str, types.InputResponse | types.ErrorData] = {}

        async def ask(key: str, question: types.InputRequest) -> None:
            answers[key] = await self.suspended.ask(question) or GONE

        async with anyio.create_task_group() as group:
            for key, question in questions.items():
                group.start_soon(ask, key, question)
        return answers

    def channel(self, deadline: PausableDeadline) -> Channel:
        """Returns the channel to its client for a server working on it until a deadline."""
        return BackChannel(self.ctx, self.capabilities, deadline, self._ask)

    async def _ask(
        self, request: types.InputRequest
    ) -> types.InputResponse | types.ErrorData | None:
        """Returns its client's answer: at once, or when it polls the job."""
        if self.is_away:
            return await self.suspended.ask(request)
        return await self._send(request, ANSWER_SECONDS)

    async def _send(
        self, request: types.InputRequest, seconds: float
    ) -> types.InputResponse | types.ErrorData:
        """Returns its client's answer during the request."""
        self.asked += 1
        try:
            return await send(
                self.ctx.session, request, related=self.ctx.request_id, seconds=seconds
            )
        finally:
            self.asked -= 1

    def name_of(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Names a call within the request; the name is the same on each retry."""
        said = digest_of(tool, arguments, self.principal.identity)
        return self.this_round.name_of(said[:DIGEST_CHARACTERS])

    async def go_on(
        self,
        name: str,
        begin: Callable[[SuspendedCall[OutcomeT]], Callable[[], Awaitable[OutcomeT]]],
        report: ProgressReporter,
    ) -> OutcomeT:
        """Starts or resumes a call within the request, for a client that retries it.

        `begin` returns the work, which runs once.
        """
        call: SuspendedCall[OutcomeT] | None = self.suspended.calls.get(name)
        if call is None:
            call = self.suspended.calls[name] = SuspendedCall(self.suspended, self.ctx)
            self.all_suspended.start(call, begin(call))
        outcome = await call.result(self.ctx, report, self.this_round)
        if outcome is None:
            raise AnswersAwaitedError("The client must answer first.")
        del self.suspended.calls[name]
        return outcome

    def missing_capability(self, message: str) -> MCPError | None:
        """Returns the error for a failure caused by a missing client capability (SEP-2575).

        Args:
            message: The failure. Returns None if it has another cause, and in protocols until
             2025-11-25, which have no such error.
        """
        if "suspended" not in vars(self):
            return None
        capability = self.suspended.missing.get(message)
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
        self.this_round.suspension = self.all_suspended.keep(self.suspended)
        self._is_kept = True
        return self.this_round.awaited

    @property
    def is_away(self) -> bool:
        """Whether its client was told to poll a job."""
        return "suspended" in vars(self) and self.suspended.is_away

    def leave(self) -> None:
        """Defers further questions until the client polls the job."""
        self.suspended.is_away = True

    def end(self) -> None:
        """Cancels its running calls, unless its client will return for them."""
        if "suspended" in vars(self) and not self._is_kept:
            self.suspended.end()


class ClientRequests:
    """The requests of all clients, and the client of each conversation.

    Attributes:
        identity: The identity of requests without a token.
        is_delegated: Whether a delegated agent makes them, so that none may name another identity.
    """

    def __init__(
        self, sessions: Sessions, identity: Identity, *, is_delegated: bool = False
    ) -> None:
        self.sessions = sessions
        self.identity = identity
        self.is_delegated = is_delegated
        self.suspended = SuspendedRequests()
        self.clients = KnownClients()
        self.changed: Changed = _ignore_change
        self._listeners: defaultdict[str, WeakSet[RootsListener]] = defaultdict(WeakSet)

    def session_of(self, ctx: Context) -> str:
        """Returns the conversation of a request."""
        return self.sessions.of(ctx, self.principal_of(ctx).identity).session_id

    def principal_of(self, ctx: Context) -> Principal:
        """Returns the identity of a request."""
        found = principal_of(ctx, self.identity)
        return replace(found, bound=True, is_delegated=True) if self.is_delegated else found

    def client_of(self, ctx: Context) -> KnownClient:
        """Returns the client of a request, and records it."""
        return self.clients.note(self.session_of(ctx), ctx)

    def listen(self, session_id: str, listener: RootsListener) -> None:
        """Notifies a listener, while it exists, when a client's directories change."""
        self._listeners[session_id].add(listener)

    def register(self, server: Server[Any]) -> None:
        """Registers handlers for what clients report about themselves."""
        server.middleware.append(self._note_early)
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    async def _note_early(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Records the client of this process as early as possible."""
        result = await call_next(ctx)
        if ctx.method in FIRST_MESSAGES and not isinstance(ctx.request, Request):
            self.client_of(ctx)
        return result

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Records the client's log level; other servers get it with the next call."""
        self.client_of(ctx).level = params.level
        return types.EmptyResult()

    async def _roots_changed(self, ctx: Context, _params: types.NotificationParams) -> None:
        for each in tuple(self._listeners.get(self.session_of(ctx), ())):
            await each.roots_changed()


def _ignore_tool(_tool: str) -> None:
    pass


async def _ignore_change(_uri: str) -> None:
    await anyio.lowlevel.checkpoint()
