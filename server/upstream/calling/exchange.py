"""Exchanges: one request to another server, with its questions before the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from pydantic import BaseModel, TypeAdapter

from server.mcp.elicitation.channels import Channel
from server.mcp.elicitation.client_requests import ClientRequest
from server.mcp.elicitation.function_run import FunctionRun
from server.mcp.elicitation.suspended import SuspendedCall
from server.mcp.sessions import can_ask
from server.upstream.calling.questions import UnshowableError, present
from server.upstream.connections.connection import Connection
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

AnswerT = TypeVar("AnswerT")
MessageT = TypeVar("MessageT", bound=BaseModel)
ResultT = TypeVar("ResultT", bound=types.Result)

_NOBODY = types.ErrorData(code=types.INVALID_REQUEST, message="No client can be asked.")


class Exchange(ABC, Generic[ResultT]):
    """One request to another server."""

    def __init__(
        self,
        upstream: Upstream,
        context: RequestContext,
        relay: ClientRequest | FunctionRun | None,  # the way to the client, if it can be asked
        named: tuple[str, Mapping[str, Any]],  # unique in the client's request; the arguments
    ) -> None:
        self.upstream = upstream
        self.context = context
        self.relay = relay
        self.named = named
        self.deadline = PausableDeadline(upstream.settings.timeout, context.deadline)
        self._channel: Channel | None = None
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
        if isinstance(relay, ClientRequest) and relay.comes_again:
            return await self._in_rounds(relay)
        self.report = self.context.report_progress if relay.wants_progress else None
        self._channel = relay.channel(self.deadline)
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
        shown = self._present(None if channel is None else channel.capabilities, request)
        answer = (None if channel is None else await channel.ask(shown)) or _NOBODY
        if isinstance(answer, types.ErrorData):
            raise self._failure(f"sent a request that the client rejected: {answer.message}")
        return answer

    async def _in_rounds(self, relay: ClientRequest) -> ResultT:
        """Makes or resumes the request for a client that is asked by ending its own request."""
        this_round = relay.this_round
        tool, arguments = self.named
        name = relay.name_of(f"{self.context.place}/{self.upstream.name}/{tool}", arguments)

        def begin(call: SuspendedCall[Any]) -> Callable[[], Awaitable[Any]]:
            self.report = call.report if relay.wants_progress else None
            self._channel = call.channel(self.deadline)
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
            with connection.callbacks.during(self._channel):
                return await work(connection)

        with self.deadline.scope:
            return await self.upstream.ask(self.context.session_id, work_and_answer)
        raise DeadlineError(
            f"The server {self.upstream.name!r} did not answer within"
            f" {self.upstream.settings.timeout:g} seconds; the call was cancelled.",
            next_actions=["Request less in one call, or retry later."],
        )

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
