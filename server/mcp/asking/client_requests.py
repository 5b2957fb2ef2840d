"""Requests of clients, and the way from the tools and servers behind us back to those clients."""

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

from server.mcp.asking.channels import ANSWER_SECONDS, BackChannel, Channel, offers_forms, sent
from server.mcp.asking.known_clients import KnownClient, KnownClients
from server.mcp.asking.rounds import Round
from server.mcp.asking.suspended import SuspendedCall, SuspendedRequest, SuspendedRequests
from server.mcp.forwarding import asks_for_progress, forwarded, opted_level
from server.mcp.sessions import Principal, Sessions, principal_of
from storage.models import Identity
from tools.core.asking.deadline import PausableDeadline
from tools.core.calling.nested import Repetition
from tools.core.client import AnswersAwaitedError, ProgressReporter, digest_of
from tools.core.invisible import encodable

FIRST_MESSAGES = frozenset({"notifications/initialized", "server/discover"})
"""With which a client says what it can be asked, before it calls anything."""

GONE = types.ErrorData(code=types.INVALID_REQUEST, message="The client is not there any more.")

DIGEST_CHARACTERS = 16
"""Of the name of a call within a request."""

Changed = Callable[[str], Awaitable[None]]
Context = ServerRequestContext[Any, Any]
OutcomeT = TypeVar("OutcomeT")


class RootsListener(Protocol):
    """Hears that a client works in other directories."""

    async def roots_changed(self) -> None:
        """Passes that on."""


class ClientRequest:
    """One request of a client, or one that goes on.

    Its round and what is suspended of it are made when they are first needed: most requests ask
    their client nothing.

    Args:
        ctx: What the SDK knows of it.
        params: What came with it.
        called: What is called, with its arguments.
        requests: Those that it is one of.

    Attributes:
        ctx: What the SDK knows of it.
        principal: As whom it is answered.
        conversation: What it belongs to.
        is_modern: Whether its client is asked by ending the call (protocol 2026-07-28).
        refusal: The error with which it is answered, where its client acts on that itself.
        may_last: Takes note that a tool runs whose call may be answered with a job.
        asked: Questions that its client answers while it waits.

    Raises:
        UnavailableError: If it goes on with a call that is not there any more.
        MCPError: If its state is not one that was given out here.
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
        self.may_last: Callable[[str], None] = _notes_nothing
        self.asked = 0
        self._params = params
        self._called = called
        self._requests = requests
        self._is_kept = False
        if self.is_modern and (params.request_state or params.input_responses):
            self.suspended.take(self.this_round.answers)

    @cached_property
    def this_round(self) -> Round:
        """What came with it, and what is asked before it is made again."""
        return Round(self._params)

    @cached_property
    def suspended(self) -> SuspendedRequest:
        """What is kept of it until its client makes it again."""
        name, arguments = self._called
        identity = self.principal.identity
        digest = digest_of(f"{self.conversation.session_id}/{name}", arguments, identity)
        return self.all_suspended.resume(self.this_round.suspension, identity, digest)

    @cached_property
    def repetition(self) -> Repetition | None:
        """The results of the calls that it made before; None where it is not made again."""
        return Repetition(self.suspended.finished) if self.is_modern else None

    @property
    def changed(self) -> Changed:
        """Tells whoever listens that a resource changed."""
        return self._requests.changed

    @property
    def all_suspended(self) -> SuspendedRequests:
        """Where its calls go on while its client is away."""
        return self._requests.suspended

    def note_client(self) -> KnownClient:
        """Returns its client, which other servers can ask from now on."""
        return self._requests.client_of(self.ctx)

    @property
    def level(self) -> types.LoggingLevel | None:
        """From which level on its client wants to hear what is logged; None if it did not say."""
        return opted_level(self.ctx) if self.is_modern else self.note_client().level

    @property
    def wants_progress(self) -> bool:
        """Whether its client hears how far the call is."""
        return asks_for_progress(self.ctx.meta)

    @property
    def meta(self) -> dict[str, Any]:
        """What its client told the server that works on it."""
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
        """Whether its client is asked by ending it, and makes it again with the answers."""
        return self.is_modern and self.can_be_asked

    @property
    def offers_forms(self) -> bool:
        """Whether its client can show a form to its person."""
        return self.capabilities is not None and offers_forms(self.capabilities.elicitation)

    @property
    def offers_sampling(self) -> bool:
        """Whether its client lets its model be asked."""
        return self.capabilities is not None and self.capabilities.sampling is not None

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        """What its client can be asked; None if nothing, now.

        An agent that work was given to is asked nothing: it would approve its own calls.
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

        Until 2025-11-25 the questions are sent in the middle of the call, one after the other. From
        2026-07-28 on the call is ended, and made again with the answers. The client of a call that
        became a job is asked when it looks at that.

        Args:
            questions: What is asked, by keys that are the same each time that the call is made.
            seconds: How long each answer may take.
            state: What to have again when the call is made again; None changes nothing.

        Returns:
            The answers by the keys of the questions.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then makes the call again.
        """
        if self.is_away:
            return await self._ask_later(questions)
        if not self.is_modern:
            return {key: await self._sent(each, seconds) for key, each in questions.items()}
        if questions.keys() - self.this_round.answers.keys():
            if state is not None:
                self.this_round.state = state
            for key, each in questions.items():
                self.this_round.ask(key, each)
            raise AnswersAwaitedError("The client has to answer first.")
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
        """The channel to its client while that waits, for whoever works on it until a deadline."""
        return BackChannel(self.ctx, self.capabilities, deadline, self._asked)

    async def _asked(
        self, request: types.InputRequest
    ) -> types.InputResponse | types.ErrorData | None:
        """What its client answers, which is asked now or when it looks at the job."""
        if self.is_away:
            return await self.suspended.ask(request)
        return await self._sent(request, ANSWER_SECONDS)

    async def _sent(
        self, request: types.InputRequest, seconds: float
    ) -> types.InputResponse | types.ErrorData:
        """What its client answers in the middle of it."""
        self.asked += 1
        try:
            return await sent(
                self.ctx.session, request, related=self.ctx.request_id, seconds=seconds
            )
        finally:
            self.asked -= 1

    def name_of(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Names a call within it; the same each time that the request is made."""
        said = digest_of(tool, arguments, self.principal.identity)
        return self.this_round.name_of(said[:DIGEST_CHARACTERS])

    async def go_on(
        self,
        name: str,
        begin: Callable[[SuspendedCall[OutcomeT]], Callable[[], Awaitable[OutcomeT]]],
        report: ProgressReporter,
    ) -> OutcomeT:
        """Makes a call within it, or goes on with it, for a client that makes it again.

        Args:
            name: The call's, as `name_of` has it.
            begin: Gives the work, which is done once.
            report: Hears how far it is.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then makes the request again.
        """
        call: SuspendedCall[OutcomeT] | None = self.suspended.calls.get(name)
        if call is None:
            call = self.suspended.calls[name] = SuspendedCall(self.suspended, self.ctx)
            self.all_suspended.start(call, begin(call))
        outcome = await call.result(self.ctx, report, self.this_round)
        if outcome is None:
            raise AnswersAwaitedError("The client has to answer first.")
        del self.suspended.calls[name]
        return outcome

    def missing_capability(self, message: str) -> MCPError | None:
        """The error that a failure is for want of a capability of the client (SEP-2575).

        Args:
            message: What failed; None is returned where that has another reason, and in protocols
                until 2025-11-25, which have no such error.
        """
        if "suspended" not in vars(self):
            return None
        capability = self.suspended.missing.get(message)
        if capability is None:
            return None
        required: dict[str, Any] = {"requiredCapabilities": {capability: {}}}
        return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, encodable(message), required)

    def awaited(self) -> types.InputRequiredResult | None:
        """What its client is to answer before it makes the call again; None if nothing.

        What goes on until then is kept.
        """
        if not ("this_round" in vars(self) and self.this_round.asks):
            return None
        self.this_round.suspension = self.all_suspended.keep(self.suspended)
        self._is_kept = True
        return self.this_round.awaited

    @property
    def is_away(self) -> bool:
        """Whether its client was told to look at a job again."""
        return "suspended" in vars(self) and self.suspended.is_away

    def leave(self) -> None:
        """Has what it asks from now on wait for whoever looks at the job."""
        self.suspended.is_away = True

    def end(self) -> None:
        """Gives up what goes on of it, unless its client is to come back for that."""
        if "suspended" in vars(self) and not self._is_kept:
            self.suspended.end()


class ClientRequests:
    """The requests of all clients, and who the client of each conversation is.

    Attributes:
        sessions: Tells which conversation a request belongs to.
        identity: Whose requests these are where no token says it.
        is_delegated: Whether an agent makes them that work was given to, so that none may be about
            anybody else.
        suspended: Those that wait for their clients to come back; entered while calls may go on.
        clients: What is known of the client of each conversation.
        changed: Tells whoever listens that a resource changed.
    """

    def __init__(
        self, sessions: Sessions, identity: Identity, *, is_delegated: bool = False
    ) -> None:
        self.sessions = sessions
        self.identity = identity
        self.is_delegated = is_delegated
        self.suspended = SuspendedRequests()
        self.clients = KnownClients()
        self.changed: Changed = _heard_by_nobody
        self._listeners: defaultdict[str, WeakSet[RootsListener]] = defaultdict(WeakSet)

    def session_of(self, ctx: Context) -> str:
        """The conversation of a request."""
        return self.sessions.of(ctx, self.principal_of(ctx).identity).session_id

    def principal_of(self, ctx: Context) -> Principal:
        """As whom a request is answered."""
        found = principal_of(ctx, self.identity)
        return replace(found, bound=True, is_delegated=True) if self.is_delegated else found

    def client_of(self, ctx: Context) -> KnownClient:
        """The client of a request, which is known from now on."""
        return self.clients.note(self.session_of(ctx), ctx)

    def listen(self, session_id: str, listener: RootsListener) -> None:
        """Tells somebody, as long as they exist, when a client works in other directories."""
        self._listeners[session_id].add(listener)

    def register(self, server: Server[Any]) -> None:
        """Has a server answer what clients say of themselves."""
        server.middleware.append(self._note_early)
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    async def _note_early(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Takes note of the client of this process as early as it can be known."""
        result = await call_next(ctx)
        if ctx.method in FIRST_MESSAGES and not isinstance(ctx.request, Request):
            self.client_of(ctx)
        return result

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Takes note of what the client wants to hear; other servers are told when called."""
        self.client_of(ctx).level = params.level
        return types.EmptyResult()

    async def _roots_changed(self, ctx: Context, _params: types.NotificationParams) -> None:
        for each in tuple(self._listeners.get(self.session_of(ctx), ())):
            await each.roots_changed()


def _notes_nothing(_tool: str) -> None:
    pass


async def _heard_by_nobody(_uri: str) -> None:
    await anyio.lowlevel.checkpoint()
