"""Exchanges: one request to another server, with its questions before the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import anyio
import mcp_types as types

from server.mcp.asking.channels import Channel
from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.function_run import FunctionRun
from server.mcp.asking.suspended import SuspendedCall
from server.mcp.sessions import can_ask
from server.upstream.calling.question_text import UnshowableError, present
from server.upstream.calling.questions import Questions
from server.upstream.connections.connection import Connection
from server.upstream.upstream import Upstream
from tools.core.asking.asker import PausableDeadline
from tools.core.client import AnswersAwaitedError, ProgressReporter
from tools.core.context import RequestContext
from tools.core.errors import DeadlineError, UpstreamError

MOST_ROUNDS = 10
"""Maximum number of rounds of a call, as in the SDK's clients."""

FIRST_PAUSE = 0.05
LAST_PAUSE = 0.25
"""Seconds before repeating a call whose server asked nothing; grows with each round."""

AnswerT = TypeVar("AnswerT")
ResultT = TypeVar("ResultT", bound=types.Result)
ResultT_co = TypeVar("ResultT_co", bound=types.Result, covariant=True)

_NOBODY = types.ErrorData(code=types.INVALID_REQUEST, message="No client can be asked.")


class Request(Protocol[ResultT_co]):
    """A request to a server."""

    async def send(
        self,
        connection: Connection,
        answers: types.InputResponses | None = None,
        state: str | None = None,
    ) -> ResultT_co | types.InputRequiredResult:
        """Sends the request once.

        Args:
            connection: The connection to the server.
            answers: The answers to its earlier questions.
            state: Its state from then.
        """


class Exchange(Generic[ResultT]):
    """One request to another server.

    Args:
        upstream: The server.
        context: The context of the request.
    """

    def __init__(self, upstream: Upstream, context: RequestContext) -> None:
        self._upstream = upstream
        self._context = context
        self._deadline = PausableDeadline(upstream.settings.timeout, context.deadline)
        self._channel: Channel | None = None

    async def ask(self, request: types.InputRequest) -> types.InputResponse:
        """Returns the client's answer to a question of the server during the request."""
        return await self._answer(self._channel, request)

    def heard(self) -> None:
        """Renews the server's deadline after a progress report."""
        self._deadline.renew(self._upstream.settings.timeout)

    async def alone(self, request: Request[ResultT]) -> ResultT:
        """Makes the request for a caller that cannot be asked."""
        return await self._in_time(partial(self._talk, None, partial(self._finish, None, request)))

    async def make(
        self,
        named: tuple[str, Mapping[str, Any]],
        make: Callable[[ProgressReporter | None], Request[ResultT]],
        relay: ClientRequest | FunctionRun,
    ) -> ResultT:
        """Makes the request for a client, asking it through the channel of its protocol.

        Args:
            named: A name that is unique in the client's request, and the arguments.
            make: Builds the request, given a progress reporter.
            relay: The channel to the client.
        """
        relay.note_client()
        if isinstance(relay, ClientRequest) and relay.comes_again:
            return await self._in_rounds(named, make, relay)
        report = self._context.report_progress if relay.wants_progress else None
        return await self._at_once(make(report), relay.channel(self._deadline))

    async def _at_once(self, request: Request[ResultT], channel: Channel) -> ResultT:
        """Makes the request while the client waits and can be asked."""
        return await self._in_time(
            partial(self._talk, channel, partial(self._finish, channel, request))
        )

    async def _in_rounds(
        self,
        named: tuple[str, Mapping[str, Any]],
        make: Callable[[ProgressReporter | None], Request[ResultT]],
        relay: ClientRequest,
    ) -> ResultT:
        """Makes or resumes the request for a client that is asked by ending its own request."""
        this_round = relay.this_round
        within = f"{self._context.place}/{self._upstream.name}"
        name = relay.name_of(f"{within}/{named[0]}", named[1])

        def begin(call: SuspendedCall[Any]) -> Callable[[], Awaitable[Any]]:
            request = make(call.report if relay.wants_progress else None)
            channel = call.channel(self._deadline)
            taken = this_round.take(name)

            async def send(connection: Connection) -> ResultT | types.InputRequiredResult:
                answer = await self._send(request, *taken, connection)
                if isinstance(answer, types.InputRequiredResult) and relay.is_away:
                    return await self._finish(channel, request, connection, answer)
                return answer

            return partial(self._in_time, partial(self._talk, channel, send))

        answer: ResultT | types.InputRequiredResult = await relay.go_on(
            name, begin, self._context.report_progress
        )
        if not isinstance(answer, types.InputRequiredResult):
            return answer
        asked = (answer.input_requests or {}).items()
        shown = {key: self._present(relay.capabilities, each) for key, each in asked}
        this_round.pass_on(name, shown, answer.request_state)
        raise AnswersAwaitedError(f"The server {self._upstream.name!r} must be answered first.")

    async def _in_time(self, work: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        with self._deadline.scope:
            return await work()
        raise DeadlineError(
            f"The server {self._upstream.name!r} did not answer within"
            f" {self._upstream.settings.timeout:g} seconds; the call was cancelled.",
            next_actions=["Request less in one call, or retry later."],
        )

    async def _talk(
        self, channel: Channel | None, ask: Callable[[Connection], Awaitable[AnswerT]]
    ) -> AnswerT:
        """Sends a request in the conversation, during which the server may ask questions."""
        self._channel = channel

        async def question(connection: Connection) -> AnswerT:
            questions = connection.callbacks
            if channel is None or not isinstance(questions, Questions):
                return await ask(connection)
            with questions.during(channel):
                return await ask(connection)

        return await self._upstream.ask(self._context.session_id, question)

    async def _finish(
        self,
        channel: Channel | None,
        request: Request[ResultT],
        connection: Connection,
        answer: ResultT | types.InputRequiredResult | None = None,
    ) -> ResultT:
        """Repeats the call until there is a result, answering a 2026-07-28 server's questions.

        Args:
            channel: The channel to the client.
            request: The request.
            connection: The connection to the server.
            answer: The answer to the first call; None if it was not made.
        """
        if answer is None:
            answer = await self._send(request, None, None, connection)
        for _ in range(MOST_ROUNDS):
            if not isinstance(answer, types.InputRequiredResult):
                break
            asked = (answer.input_requests or {}).items()
            answers = {key: await self._answer(channel, each) for key, each in asked}
            answer = await self._send(request, answers, answer.request_state, connection)
        if not isinstance(answer, types.InputRequiredResult):
            return answer
        raise UpstreamError(
            f"The server {self._upstream.name!r} asked more than {MOST_ROUNDS} times in one call."
        )

    async def _send(
        self,
        request: Request[ResultT],
        answers: types.InputResponses | None,
        state: str | None,
        connection: Connection,
    ) -> ResultT | types.InputRequiredResult:
        """Makes the call, repeating it if the server requests only that."""
        pause = FIRST_PAUSE
        for _ in range(MOST_ROUNDS):
            answer = await request.send(connection, answers, state)
            if not isinstance(answer, types.InputRequiredResult) or answer.input_requests:
                return answer
            answers, state = None, answer.request_state
            await anyio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE)
        raise UpstreamError(
            f"The server {self._upstream.name!r} postponed the call more than {MOST_ROUNDS} times."
        )

    async def _answer(
        self, channel: Channel | None, request: types.InputRequest
    ) -> types.InputResponse:
        shown = self._present(None if channel is None else channel.capabilities, request)
        answer = (None if channel is None else await channel.ask(shown)) or _NOBODY
        if isinstance(answer, types.ErrorData):
            raise UpstreamError(
                f"The server {self._upstream.name!r} sent a request that the client rejected: "
                + answer.message
            )
        return answer

    def _present(
        self, capabilities: types.ClientCapabilities | None, request: types.InputRequest
    ) -> types.InputRequest:
        if not can_ask(capabilities, request):
            raise UpstreamError(
                f"The server {self._upstream.name!r} sent a request this client does not support"
                f" ({request.method})."
            )
        try:
            return present(self._upstream.name, request)
        except UnshowableError as error:
            raise UpstreamError(
                f"The server {self._upstream.name!r} sent a request that cannot be shown: {error}"
            ) from error
