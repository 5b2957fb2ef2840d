"""Calls of the tools of other servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.upstream.answers import result_of
from server.upstream.connection import Connection
from server.upstream.parked import ParkedCall
from server.upstream.patience import Patience
from server.upstream.presenting import UnshowableError, presented
from server.upstream.questions import Questions
from server.upstream.refusals import is_for_client, no_result, refusal
from server.upstream.relay import Relay
from server.upstream.sending import Answer, Outgoing
from server.upstream.upstream import Upstream
from server.upstream.ways import BackChannel, Way, can_ask
from tools.core.approval import digest_of
from tools.core.context import RequestContext
from tools.core.errors import DeadlineError, UpstreamError
from tools.core.sampling import AnswersAwaitedError
from tools.core.spec import ToolResult

__all__ = ["call"]

MOST_ROUNDS = 10
"""Times that a server may end one call to be called again, as the SDK's clients have it."""

FIRST_PAUSE = 0.05
LAST_PAUSE = 0.25
"""Seconds before a server is called again that asked nothing, growing."""

DIGEST_CHARACTERS = 16

AnswerT = TypeVar("AnswerT")

_NOBODY = types.ErrorData(code=types.INVALID_REQUEST, message="Nobody can be asked.")


async def call(
    upstream: Upstream, own_name: str, arguments: dict[str, Any], context: RequestContext
) -> ToolResult:
    """Calls a tool of another server and hands on what it answers.

    Args:
        upstream: The server.
        own_name: What it calls the tool.
        arguments: As the caller gave them.
        context: Whose call it is.

    Raises:
        UnavailableError: If the server cannot be reached.
        InvalidArgumentsError: If it does not take the arguments.
        UpstreamError: If it answers with another error of the protocol, or not as that wants it.
        DeadlineError: If it takes too long; the time in which somebody is asked does not count.
        AnswersAwaitedError: If the client has to answer first, and then makes the call again.
    """
    relay = context.relay if isinstance(context.relay, Relay) else None
    made = _Call(upstream, context)
    try:
        if relay is None:
            answer = await made.alone(Outgoing(own_name, arguments))
        elif relay.is_modern and relay.can_be_asked:
            answer = await made.in_rounds(own_name, arguments, relay)
        else:
            report = context.report_progress if relay.wants_progress else None
            outgoing = Outgoing(own_name, arguments, relay.meta, report, relay.level)
            answer = await made.at_once(outgoing, relay)
    except MCPError as error:
        if relay is not None and is_for_client(error):
            relay.this_round.refusal = error
        raise refusal(upstream.name, error) from error
    except ValidationError as error:
        raise no_result(upstream.name, error) from error
    return result_of(answer, modern=relay is not None and relay.is_modern)


class _Call:
    """One call of a tool of another server.

    Args:
        upstream: The server.
        context: Whose call it is.
    """

    def __init__(self, upstream: Upstream, context: RequestContext) -> None:
        self._upstream = upstream
        self._context = context
        self._patience = Patience(upstream.settings.timeout)

    async def alone(self, outgoing: Outgoing) -> types.CallToolResult:
        """Makes it for somebody who cannot be asked."""
        return await self._in_time(partial(self._talk, None, partial(self._finish, None, outgoing)))

    async def at_once(self, outgoing: Outgoing, relay: Relay) -> types.CallToolResult:
        """Makes it while the client waits, who is asked meanwhile where that can be."""
        way = BackChannel(relay.ctx, self._patience)
        return await self._in_time(partial(self._talk, way, partial(self._finish, way, outgoing)))

    async def in_rounds(
        self, own_name: str, arguments: dict[str, Any], relay: Relay
    ) -> types.CallToolResult:
        """Makes it, or goes on with it, for a client that is asked by ending its own call."""
        this_round = relay.this_round
        said = digest_of(f"{self._upstream.name}/{own_name}", arguments, self._context.identity)
        name = this_round.name_of(said[:DIGEST_CHARACTERS])
        prefix = f"{self._upstream.name}:{name}:"
        parked: ParkedCall[Answer] | None = relay.stay.calls.get(name)
        if parked is None:
            parked = relay.stay.calls[name] = ParkedCall(relay.ctx, self._patience)
            report = parked.report if relay.wants_progress else None
            outgoing = Outgoing(own_name, arguments, relay.meta, report, relay.level)
            send = partial(self._send, outgoing, *this_round.take(name))
            talk = partial(self._talk, parked, send)
            relay.parked.start(parked, partial(self._in_time, talk))
        answer = await parked.result(relay.ctx, self._context.report_progress, prefix, this_round)
        if answer is not None:
            del relay.stay.calls[name]
        if isinstance(answer, types.CallToolResult):
            return answer
        if answer is not None:
            asked = (answer.input_requests or {}).items()
            shown = {key: self._presented(parked, request) for key, request in asked}
            this_round.pass_on(name, shown, answer.request_state)
        raise AnswersAwaitedError(f"The server {self._upstream.name!r} has to be answered first.")

    async def _in_time(self, work: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        with self._patience.scope:
            return await work()
        raise DeadlineError(
            f"The server {self._upstream.name!r} did not answer within"
            f" {self._upstream.settings.timeout:g} seconds; the call was cancelled.",
            next_actions=["Ask for less in one call, or call again later."],
        )

    async def _talk(
        self, way: Way | None, ask: Callable[[Connection], Awaitable[AnswerT]]
    ) -> AnswerT:
        """Asks in the conversation; meanwhile the server may ask as well."""

        async def question(connection: Connection) -> AnswerT:
            questions = connection.callbacks
            if way is None or not isinstance(questions, Questions):
                return await ask(connection)
            with questions.during(way):
                return await ask(connection)

        return await self._upstream.ask(self._context.session_id, question)

    async def _finish(
        self, way: Way | None, outgoing: Outgoing, connection: Connection
    ) -> types.CallToolResult:
        """Calls until there is a result, and answers what a server of 2026-07-28 asks."""
        answers: types.InputResponses | None = None
        state: str | None = None
        for _ in range(MOST_ROUNDS + 1):
            answer = await self._send(outgoing, answers, state, connection)
            if isinstance(answer, types.CallToolResult):
                return answer
            asked = (answer.input_requests or {}).items()
            answers = {key: await self._answered(way, request) for key, request in asked}
            state = answer.request_state
        raise UpstreamError(
            f"The server {self._upstream.name!r} asked more than {MOST_ROUNDS} times in one call."
        )

    async def _send(
        self,
        outgoing: Outgoing,
        answers: types.InputResponses | None,
        state: str | None,
        connection: Connection,
    ) -> Answer:
        """Makes the call, again and again where the server only wants that."""
        pause = FIRST_PAUSE
        for _ in range(MOST_ROUNDS):
            answer = await outgoing.send(connection, answers, state)
            if isinstance(answer, types.CallToolResult) or answer.input_requests:
                return answer
            answers, state = None, answer.request_state
            await anyio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE)
        raise UpstreamError(
            f"The server {self._upstream.name!r} put the call off more than {MOST_ROUNDS} times."
        )

    async def _answered(self, way: Way | None, request: types.InputRequest) -> types.InputResponse:
        shown = self._presented(way, request)
        answer = _NOBODY if way is None else await way.ask(shown)
        if isinstance(answer, types.ErrorData):
            raise UpstreamError(
                f"The server {self._upstream.name!r} asked for what the client did not answer: "
                + answer.message
            )
        return answer

    def _presented(self, way: Way | None, request: types.InputRequest) -> types.InputRequest:
        if way is None or not can_ask(way.capabilities, request):
            raise UpstreamError(
                f"The server {self._upstream.name!r} asked for what this client cannot be asked"
                f" ({request.method})."
            )
        try:
            return presented(self._upstream.name, request)
        except UnshowableError as error:
            raise UpstreamError(
                f"The server {self._upstream.name!r} asked in vain: {error}"
            ) from error
