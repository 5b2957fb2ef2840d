"""Takes a server's questions and logs to the right client, named and safe to display."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession

from server.mcp.elicitation.channels import Channel, send
from server.mcp.elicitation.client_requests import ClientRequests
from server.mcp.sessions import Abilities, KnownClient, can_ask
from server.mcp.visible import visible, visible_form, visible_lines
from server.mcp.wire import MOST_AT_ONCE, is_logged, log_from, wants_log
from server.upstream.connections.connection import Callbacks

_WEB = re.compile(r"https?://[!-~]+", re.IGNORECASE)
"""Addresses of visible characters only: RFC 3986 allows no others."""


ROOTS_SECONDS = 10.0
"""Time for a client to list its directories outside of a call."""

_NO_ANSWER = types.ErrorData(code=types.INTERNAL_ERROR, message="The answer has the wrong type.")


class UnshowableError(ValueError):
    """A question that must not be shown to a user."""


def present(server: str, request: types.InputRequest) -> types.InputRequest:
    """Converts another server's question to the form for its client.

    Raises an UnshowableError if it sends the user to an invalid web address.
    """
    match request:
        case types.ElicitRequest(params=types.ElicitRequestURLParams() as params):
            return types.ElicitRequest(params=present_page(server, params))
        case types.ElicitRequest(params=types.ElicitRequestFormParams() as params):
            form = types.ElicitRequestFormParams(
                message=_message_text(server, params.message),
                requested_schema=visible_form(params.requested_schema),
            )
            return types.ElicitRequest(params=form)
        case types.CreateMessageRequest(params=params):
            return types.CreateMessageRequest(params=_sampling(server, params))
        case _:
            return types.ListRootsRequest()


def completed_id(server: str, elicitation_id: str) -> str:
    """Returns the question's id for the client, unique across servers."""
    return f"{server}:{elicitation_id}"


def present_page(server: str, params: types.ElicitRequestURLParams) -> types.ElicitRequestURLParams:
    """Converts a web page that another server sends the user to, to the form for its client."""
    if not _WEB.fullmatch(params.url):
        raise UnshowableError(f"{visible(params.url[:200])} is not the address of a web page.")
    return types.ElicitRequestURLParams(
        message=_message_text(server, params.message),
        url=params.url,
        elicitation_id=completed_id(server, params.elicitation_id or ""),
    )


def _message_text(server: str, message: str) -> str:
    return f"The server {server!r} asks: {visible_lines(message)}"


def _sampling(
    server: str, params: types.CreateMessageRequestParams
) -> types.CreateMessageRequestParams:
    """Converts a sampling request; the user may see it first.

    The requested context would include that of all servers behind this one, so none is included.
    """
    who = f"The MCP server {server!r} asks this, through Toolcrib."
    system = f"{who}\n\n{visible_lines(params.system_prompt)}" if params.system_prompt else who
    return params.model_copy(
        update={
            "system_prompt": system,
            "messages": [_message(each) for each in params.messages],
            "include_context": "none",
            "meta": None,
        }
    )


def _message(message: types.SamplingMessage) -> types.SamplingMessage:
    shown = [
        each.model_copy(update={"text": visible_lines(each.text)})
        if isinstance(each, types.TextContent)
        else each
        for each in message.content_as_list
    ]
    content = shown if isinstance(message.content, list) else shown[0]
    return message.model_copy(update={"content": content})


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
        return next((each.ctx for each in reversed(self._channels) if each.ctx is not None), None)

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
