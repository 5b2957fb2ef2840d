"""Takes a server's questions and logs to the right client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.server.context import ServerRequestContext

from server.mcp.asking.channels import Channel, send
from server.mcp.asking.client_requests import ClientRequests
from server.mcp.forwarding import MOST_AT_ONCE, is_logged, log_from, wants_log
from server.mcp.sessions import Abilities, KnownClient, can_ask
from server.upstream.calling.question_text import UnshowableError, completed_id, present
from server.upstream.connections.connection import Callbacks

ROOTS_SECONDS = 10.0
"""Time for a client to list its directories outside of a call."""


_NO_ANSWER = types.ErrorData(code=types.INTERNAL_ERROR, message="The answer has the wrong type.")


def questions_of(requests: ClientRequests, server: str, session_id: str) -> Questions:
    """Builds the callbacks of a server in a conversation, for its client's current abilities.

    Args:
        requests: Identifies the client.
        server: The name of the server in the settings.
        session_id: The conversation.
    """
    known = requests.clients.get(session_id)
    made = Questions(
        server,
        Abilities() if known is None else known.abilities,
        partial(requests.clients.get, session_id),
    )
    requests.listen(session_id, made)
    return made


class Questions(Callbacks):
    """Answers questions of one connection's server by asking the client of its conversation.

    Args:
        server: The name of the server in the settings.
        made_for: The client's abilities, as declared to the server.
        counterpart: Returns the client as currently known.
    """

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
        self.level: types.LoggingLevel | None = None
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
    def during(self, channel: Channel) -> Iterator[None]:
        """Registers the channel of a request during which the server may ask."""
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
        return answer if isinstance(answer, types.ElicitResult | types.ErrorData) else _NO_ANSWER

    async def _sample(
        self,
        context: ClientRequestContext,  # noqa: ARG002  # the same
        params: types.CreateMessageRequestParams,
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        answer = await self._ask(types.CreateMessageRequest(params=params))
        kinds = types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData
        return answer if isinstance(answer, kinds) else _NO_ANSWER

    async def _list_roots(
        self, context: ClientRequestContext
    ) -> types.ListRootsResult | types.ErrorData:
        self._wants_roots = context.session
        answer = await self._ask(types.ListRootsRequest())
        return answer if isinstance(answer, types.ListRootsResult | types.ErrorData) else _NO_ANSWER

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
        return next((each for each in untried if can_ask(each.capabilities, request)), None)

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        known = self._counterpart()
        floor = None if known is None else known.level
        ctx = self._newest_request()
        message = log_from(self.server, params)
        if ctx is not None and wants_log(ctx, params.level, floor):
            await self._tell(ctx, message)
        elif ctx is None and known is not None and is_logged(params.level, floor):
            await self._tell_outside(known, message)

    async def _hear(self, message: IncomingMessage) -> None:
        if not isinstance(message, types.ElicitCompleteNotification):
            return
        told = types.ElicitCompleteNotification(
            params=types.ElicitCompleteNotificationParams(
                elicitation_id=completed_id(self.server, message.params.elicitation_id)
            )
        )
        ctx, known = self._newest_request(), self._counterpart()
        if known is None or not known.abilities.handshake:
            return  # protocol 2026-07-28 has no such notification
        if ctx is not None:
            await self._tell(ctx, told)
        else:
            await self._tell_outside(known, told)

    def _newest_request(self) -> ServerRequestContext[Any, Any] | None:
        return next((each.ctx for each in reversed(self._channels) if each.ctx is not None), None)

    async def _tell(
        self, ctx: ServerRequestContext[Any, Any], message: types.ServerNotification
    ) -> None:
        if self._telling >= MOST_AT_ONCE:
            return
        self._telling += 1
        try:
            await ctx.session.send_notification(message, ctx.request_id)
        finally:
            self._telling -= 1

    async def _tell_outside(self, known: KnownClient, message: types.ServerNotification) -> None:
        if known.session is None or self._telling >= MOST_AT_ONCE:
            return
        self._telling += 1
        try:
            await known.session.send_notification(message)
        finally:
            self._telling -= 1
