"""Channels: forward another server's questions to the client of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from tools.core.calling.call import PausableDeadline

ANSWER_SECONDS = 600.0
"""Time for the user to answer."""


Ask = Callable[[types.InputRequest], Awaitable[types.InputResponse | types.ErrorData | None]]


class Channel(Protocol):
    """The channel to the client of one request."""

    capabilities: types.ClientCapabilities | None
    deadline: PausableDeadline

    @property
    def ctx(self) -> ServerRequestContext[Any, Any] | None:
        """The request; None while its client must retry it."""

    async def ask(
        self, request: types.InputRequest
    ) -> types.InputResponse | types.ErrorData | None:
        """Returns the client's answer; an error if it fails, None if the client is gone."""


class BackChannel:
    """Asks during a request, pausing its deadline (protocols until 2025-11-25)."""

    def __init__(
        self,
        ctx: ServerRequestContext[Any, Any],
        capabilities: types.ClientCapabilities | None,
        deadline: PausableDeadline,
        send: Ask,
    ) -> None:
        self.capabilities = capabilities
        self.ctx: ServerRequestContext[Any, Any] | None = ctx
        self.deadline = deadline
        self._send = send

    async def ask(
        self, request: types.InputRequest
    ) -> types.InputResponse | types.ErrorData | None:
        """Returns the client's answer, or an error."""
        with self.deadline.paused():
            return await self._send(request)


async def send(
    session: ServerSession,
    request: types.InputRequest,
    *,
    related: types.RequestId | None = None,
    seconds: float = ANSWER_SECONDS,
) -> types.InputResponse | types.ErrorData:
    """Sends a question, related to a request, to a client of the older protocols."""
    try:
        return await session.send_request(
            request,
            answer_type(request),
            request_read_timeout_seconds=seconds,
            metadata=ServerMessageMetadata(related_request_id=related),
        )
    except MCPError as error:
        return error.error
    except ValidationError:
        return types.ErrorData(
            code=types.INTERNAL_ERROR, message="The client's answer has the wrong type."
        )


def answer_type(request: types.InputRequest) -> type[Any]:
    """Returns the type of the answer to a question."""
    match request:
        case types.ElicitRequest():
            return types.ElicitResult
        case types.ListRootsRequest():
            return types.ListRootsResult
        case types.CreateMessageRequest(params=params) if params.tools or params.tool_choice:
            return types.CreateMessageResultWithTools
        case _:
            return types.CreateMessageResult


def fits(request: types.InputRequest, answer: types.InputResponse) -> bool:
    """Returns whether an answer is of the type that was asked for."""
    if isinstance(request, types.CreateMessageRequest):
        return isinstance(answer, types.CreateMessageResult | types.CreateMessageResultWithTools)
    return isinstance(answer, answer_type(request))
