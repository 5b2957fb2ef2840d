"""Exchanges: one request to another server, and what the server asks and logs meanwhile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Generic, TypeVar
from uuid import uuid4

import anyio
import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from pydantic import BaseModel, TypeAdapter
from starlette.requests import Request

from server.mcp.elicitation.client_requests import ClientRequest
from server.mcp.elicitation.questions import Relay, can_ask, send
from server.mcp.elicitation.suspended import SuspendedRun
from server.mcp.sessions import Abilities, ClientRequests, KnownClient
from server.mcp.wire import MOST_AT_ONCE, is_logged, log_from, wants_log
from server.upstream.calling.questions import UnshowableError, completed_id, present
from server.upstream.connections.connection import Callbacks, Channel, Connection
from server.upstream.connections.link import SignInRequiredError
from server.upstream.upstream import Upstream
from tools.core.calling.call import PausableDeadline
from tools.core.client import AnswersAwaitedError, ProgressReporter
from tools.core.context import RequestContext
from tools.core.errors import DeadlineError, UpstreamError

MOST_ROUNDS = 10
"""Maximum number of rounds of a call, as in the SDK's clients."""

FIRST_PAUSE = 0.05
LAST_PAUSE = 0.25
"""Seconds before repeating a call whose server asked nothing; grows with each round."""

ROOTS_SECONDS = 10.0
"""Time for a client to list its directories outside of a call."""

AnswerT = TypeVar("AnswerT")
MessageT = TypeVar("MessageT", bound=BaseModel)
ResultT = TypeVar("ResultT", bound=types.Result)

_WRONG = types.ErrorData(code=types.INTERNAL_ERROR, message="The answer has the wrong type.")
_NOBODY = types.ErrorData(code=types.INVALID_REQUEST, message="No client can be asked.")


class Exchange(ABC, Generic[ResultT]):
    """One request to another server."""

    def __init__(
        self,
        upstream: Upstream,
        context: RequestContext,
        relay: Relay | None,  # the way to the client, if it can be asked
        named: tuple[str, Mapping[str, Any]],  # unique in the client's request; the arguments
    ) -> None:
        self.upstream = upstream
        self.context = context
        self.relay = relay
        self.named = named
        self.deadline = PausableDeadline(upstream.settings.timeout, context.deadline)
        self._channel: Channel | None = None  # None if no client can be asked
        self.report: ProgressReporter | None = None  # None if the client wants no progress

    @abstractmethod
    async def send(
        self, connection: Connection, answers: types.InputResponses | None, state: str | None
    ) -> ResultT | types.InputRequiredResult:
        """Sends the request once, with answers to the server's earlier questions and its state."""

    async def result(self) -> ResultT:
        """Makes the request, asking the client through the channel of its protocol.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then retries its request.
        """
        relay = self.relay
        if relay is None:
            return await self._run(self._finish)
        relay.note_client()
        if isinstance(relay, ClientRequest) and relay.is_retried:
            return await self._in_rounds(relay)
        self.report = self.context.report_progress if relay.wants_progress else None
        self._channel = Channel(relay, self.deadline)
        return await self._run(self._finish)

    async def request(
        self, session: ClientSession, request: types.Request[Any, Any], kind: TypeAdapter[MessageT]
    ) -> MessageT:
        """Sends a message, and reports its progress to the client."""
        told = None if self.report is None else self._tell
        return await session.send_request(request, kind, progress_callback=told)

    async def ask(self, request: types.InputRequest) -> types.InputResponse:
        """Returns the client's answer to a question of the server during the request."""
        channel = self._channel
        shown = self._present(None if channel is None else channel.relay.capabilities, request)
        answer = (None if channel is None else await channel.ask(shown)) or _NOBODY
        if isinstance(answer, types.ErrorData):
            raise self._failure(f"sent a request that the client rejected: {answer.message}")
        return answer

    async def _in_rounds(self, relay: ClientRequest) -> ResultT:
        """Makes or resumes the request for a client that is asked by ending its own request."""
        this_round = relay.this_round
        tool, arguments = self.named
        name = relay.name_of(f"{self.context.place}/{self.upstream.name}/{tool}", arguments)

        def begin(run: SuspendedRun[Any]) -> Callable[[], Awaitable[Any]]:
            self.report = run.report if relay.wants_progress else None
            self._channel = Channel(run, self.deadline)
            taken = this_round.take(name)

            async def send(connection: Connection) -> ResultT | types.InputRequiredResult:
                answer = await self._send(connection, *taken)
                if isinstance(answer, types.InputRequiredResult) and relay.is_away:
                    return await self._finish(connection, answer)
                return answer

            return partial(self._run, send)

        answer: ResultT | types.InputRequiredResult = await relay.go_on(
            name, begin, self.context.report_progress
        )
        if not isinstance(answer, types.InputRequiredResult):
            return answer
        asked = (answer.input_requests or {}).items()
        shown = {key: self._present(relay.capabilities, each) for key, each in asked}
        this_round.pass_on(name, shown, answer.request_state)
        raise AnswersAwaitedError(f"The server {self.upstream.name!r} must be answered first.")

    async def _run(self, work: Callable[[Connection], Awaitable[AnswerT]]) -> AnswerT:
        """Works with the conversation's connection, whose server may ask questions meanwhile."""

        async def work_and_answer(connection: Connection) -> AnswerT:
            is_own = connection.session_id == self.context.session_id
            # On a connection that conversations share, a question may come from another one's call.
            with connection.callbacks.during(self._channel if is_own else None):
                return await work(connection)

        with self.deadline.scope:
            try:
                return await self.upstream.ask(self.context.session_id, work_and_answer)
            except SignInRequiredError:
                if not await self._sign_in():
                    raise
            return await self.upstream.ask(self.context.session_id, work_and_answer)
        raise DeadlineError(
            f"The server {self.upstream.name!r} did not answer within"
            f" {self.upstream.settings.timeout:g} seconds; the call was cancelled.",
            next_actions=["Request less in one call, or retry later."],
        )

    async def _sign_in(self) -> bool:
        """Shows the user the page to sign in to the server; returns whether they did.

        Only over stdio: the browser returns to this machine, and everybody here uses the sign-in.
        """
        channel = self._channel
        context = None if channel is None else channel.relay.waiting()
        page = types.ElicitRequestURLParams(
            message="Please sign in.", url="", elicitation_id=uuid4().hex
        )
        if channel is None or context is None or isinstance(context.request, Request):
            return False
        if not can_ask(channel.relay.capabilities, types.ElicitRequest(params=page)):
            return False

        async def show(url: str) -> None:
            shown = page.model_copy(update={"url": url})
            answer = await self.ask(types.ElicitRequest(params=shown))
            if not isinstance(answer, types.ElicitResult) or answer.action != "accept":
                raise self._failure("was not signed in to: the user declined.")

        with channel.deadline.paused():
            return await self.upstream.sign_in(show)

    async def _finish(
        self, connection: Connection, answer: ResultT | types.InputRequiredResult | None = None
    ) -> ResultT:
        """Repeats the request until there is a result, answering a 2026-07-28 server's questions.

        Sends the first request too, unless its answer is given.
        """
        if answer is None:
            answer = await self._send(connection, None, None)
        for _ in range(MOST_ROUNDS):
            if not isinstance(answer, types.InputRequiredResult):
                return answer
            asked = (answer.input_requests or {}).items()
            answers = {key: await self.ask(each) for key, each in asked}
            answer = await self._send(connection, answers, answer.request_state)
        if not isinstance(answer, types.InputRequiredResult):
            return answer
        raise self._failure(f"asked more than {MOST_ROUNDS} times in one call.")

    async def _send(
        self, connection: Connection, answers: types.InputResponses | None, state: str | None
    ) -> ResultT | types.InputRequiredResult:
        """Sends the request, repeating it if the server requests only that."""
        pause = FIRST_PAUSE
        for _ in range(MOST_ROUNDS):
            answer = await self.send(connection, answers, state)
            if not isinstance(answer, types.InputRequiredResult) or answer.input_requests:
                return answer
            answers, state = None, answer.request_state
            await anyio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE)
        raise self._failure(f"postponed the call more than {MOST_ROUNDS} times.")

    async def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        if self.report is not None:
            await self.report(progress, total, message)

    def _present(
        self, capabilities: types.ClientCapabilities | None, request: types.InputRequest
    ) -> types.InputRequest:
        if not can_ask(capabilities, request):
            raise self._failure(f"sent a request this client does not support ({request.method}).")
        try:
            return present(self.upstream.name, request)
        except UnshowableError as error:
            raise self._failure(f"sent a request that cannot be shown: {error}") from error

    def _failure(self, problem: str) -> UpstreamError:
        return UpstreamError(f"The server {self.upstream.name!r} {problem}")


def questions_of(requests: ClientRequests, server: str, session_id: str) -> Questions:
    """Builds the callbacks of a server in a conversation, for its client's current abilities."""
    known = requests.clients.get(session_id)
    made = Questions(
        server,
        Abilities() if known is None else known.abilities,
        partial(requests.clients.get, session_id),
    )
    requests.listen(session_id, made)
    return made


class Questions(Callbacks):
    """Answers questions of one connection's server by asking the client of its conversation."""

    def __init__(
        self, server: str, made_for: Abilities, counterpart: Callable[[], KnownClient | None]
    ) -> None:
        self.server = server
        self.handshake = made_for.handshake
        self.logging = self._log
        self.message = self._hear
        if made_for.elicitation:
            self.elicitation = self._elicit
        if made_for.sampling:
            self.sampling = self._sample
            if made_for.sampling_tools:
                self.sampling_capabilities = types.SamplingCapability(
                    tools=types.SamplingToolsCapability()
                )
        if made_for.roots:
            self.roots = self._list_roots
        self._made_for = made_for
        self._counterpart = counterpart
        self._channels: list[Channel] = []
        self._telling = 0
        self._wants_roots: ClientSession | None = None

    @property
    def outdated(self) -> bool:
        """Whether the client's abilities differ from those declared to the server."""
        now = self._counterpart()
        return now is not None and now.abilities != self._made_for

    @contextmanager
    def during(self, channel: Channel | None) -> Iterator[None]:
        """Registers the channel of a request during which the server may ask."""
        if channel is None:
            yield
            return
        self._channels.append(channel)
        try:
            yield
        finally:
            self._channels.remove(channel)

    async def roots_changed(self) -> None:
        """Notifies the server of changed directories, if it has asked for them."""
        if self._wants_roots is not None:
            await self._wants_roots.send_notification(types.RootsListChangedNotification())

    async def _elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002  # the SDK's signature
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        answer = await self._ask(types.ElicitRequest(params=params))
        return answer if isinstance(answer, types.ElicitResult | types.ErrorData) else _WRONG

    async def _sample(
        self,
        context: ClientRequestContext,  # noqa: ARG002  # the same
        params: types.CreateMessageRequestParams,
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        answer = await self._ask(types.CreateMessageRequest(params=params))
        kinds = types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData
        return answer if isinstance(answer, kinds) else _WRONG

    async def _list_roots(
        self, context: ClientRequestContext
    ) -> types.ListRootsResult | types.ErrorData:
        self._wants_roots = context.session
        answer = await self._ask(types.ListRootsRequest())
        return answer if isinstance(answer, types.ListRootsResult | types.ErrorData) else _WRONG

    async def _ask(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        try:
            shown = present(self.server, request)
        except UnshowableError as error:
            return types.ErrorData(code=types.INVALID_PARAMS, message=str(error))
        with ExitStack() as stack:
            for channel in tuple(self._channels):  # any of them may have caused it
                stack.enter_context(channel.deadline.paused())
            tried: list[Channel] = []
            while (found := self._channel_for(request, tried)) is not None:
                answer = await found.ask(shown)
                if answer is not None:
                    return answer
                tried.append(found)
        known = self._counterpart()
        if isinstance(request, types.ListRootsRequest) and known is not None and known.session:
            return await send(known.session, shown, seconds=ROOTS_SECONDS)
        return types.ErrorData(
            code=types.INVALID_REQUEST,
            message="No request is active whose client can be asked this.",
        )

    def _channel_for(self, request: types.InputRequest, tried: list[Channel]) -> Channel | None:
        """Returns the channel of the newest request whose client can be asked and was not yet.

        A question does not name its request. All active requests belong to one conversation, so
        any of them reaches the right client. The newest has most probably caused the question, and
        its client has waited the shortest time.
        """
        untried = (each for each in reversed(self._channels) if each not in tried)
        return next((each for each in untried if can_ask(each.relay.capabilities, request)), None)

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        known = self._counterpart()
        floor = None if known is None else known.level
        ctx = self._newest_request()
        message = log_from(self.server, params)
        if ctx is not None and wants_log(ctx, params.level, floor):
            await self._tell(ctx.session, message, ctx.request_id)
        elif ctx is None and known is not None and is_logged(params.level, floor):
            await self._tell(known.session, message)

    async def _hear(self, message: IncomingMessage) -> None:
        if not isinstance(message, types.ElicitCompleteNotification):
            return
        ctx, known = self._newest_request(), self._counterpart()
        if known is None or not known.abilities.handshake:
            return  # protocol 2026-07-28 has no such notification
        told = types.ElicitCompleteNotification(
            params=types.ElicitCompleteNotificationParams(
                elicitation_id=completed_id(self.server, message.params.elicitation_id)
            )
        )
        if ctx is not None:
            await self._tell(ctx.session, told, ctx.request_id)
        else:
            await self._tell(known.session, told)

    def _newest_request(self) -> ServerRequestContext[Any, Any] | None:
        waiting = (each.relay.waiting() for each in reversed(self._channels))
        return next((each for each in waiting if each is not None), None)

    async def _tell(
        self,
        session: ServerSession | None,
        message: types.ServerNotification,
        request_id: types.RequestId | None = None,
    ) -> None:
        """Notifies the client, in a request or outside of any; drops what it is too slow for."""
        if session is None or self._telling >= MOST_AT_ONCE:
            return
        self._telling += 1
        try:
            await session.send_notification(message, request_id)
        finally:
            self._telling -= 1
