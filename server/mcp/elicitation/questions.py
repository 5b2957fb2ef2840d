"""Questions to a client: the way to it, what it can be asked, and what fits as an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from server.mcp.elicitation.rounds import Round
from tools.core.elicitation.asker import Capability

ANSWER_SECONDS = 600.0
"""Time for the user to answer."""

GONE = types.ErrorData(code=types.INVALID_REQUEST, message="The client has disconnected.")

WRONG_KIND = types.ErrorData(
    code=types.INTERNAL_ERROR, message="The client's answer has the wrong type."
)

Answer = types.InputResponse | types.ErrorData
Context = ServerRequestContext[Any, Any]


class Relay(ABC):
    """The way from a call to its client, for functions, approvals and other servers.

    A `ClientRequest` asks during the request, or by ending it; a `SuspendedRun` outlives it.
    """

    is_modern: bool  # whether its client is asked by ending the request (protocol 2026-07-28)
    capabilities: types.ClientCapabilities | None  # what its client can be asked; None if nothing
    offers_forms: bool  # whether its client can show a form to its user
    offers_sampling: bool  # whether its client offers sampling
    meta: dict[str, Any]  # the metadata that its client sent, as forwarded to servers
    wants_progress: bool  # whether its client wants progress reports
    client: str  # the client's name, as it reports it

    @property
    def retried_round(self) -> Round | None:
        """The round of a request that is retried with answers; None for others."""
        return None

    @property
    @abstractmethod
    def is_away(self) -> bool:
        """Whether its client was told to poll a job, and is asked when it does."""

    @property
    @abstractmethod
    def level(self) -> types.LoggingLevel | None:
        """The minimum log level that its client wants; None if it set none."""

    @abstractmethod
    def waiting(self) -> Context | None:
        """Returns the request that waits for the call; None while its client is away."""

    @abstractmethod
    def note_client(self) -> object:
        """Records its client, for questions of other servers."""

    @abstractmethod
    def note_missing(self, capability: Capability, message: str) -> None:
        """Records a missing client capability and the message given to the function."""

    @abstractmethod
    async def changed(self, uri: str) -> None:
        """Notifies subscribers that a resource changed."""

    @abstractmethod
    async def ask(
        self,
        questions: Mapping[str, types.InputRequest],
        *,
        seconds: float,
        state: str | None = None,
    ) -> Mapping[str, Answer]:
        """Returns its client's answers.

        The keys of questions are the same on each retry, and the client may have answered under
        them already. A retry returns the state; None keeps the current one.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then retries the request.
        """

    @abstractmethod
    async def ask_one(self, question: types.InputRequest) -> Answer | None:
        """Returns its client's answer to a server's question; None if the client is gone."""


def can_ask(capabilities: types.ClientCapabilities | None, request: types.InputRequest) -> bool:
    """Returns whether a client's capabilities cover a question."""
    if capabilities is None:
        return False
    match request:
        case types.ListRootsRequest():
            return capabilities.roots is not None
        case types.CreateMessageRequest(params=params):
            offered = capabilities.sampling
            wants_tools = bool(params.tools or params.tool_choice)
            return offered is not None and (offered.tools is not None or not wants_tools)
        case _:
            return _can_elicit(capabilities.elicitation, request.params)


def _can_elicit(
    offered: types.ElicitationCapability | None, params: types.ElicitRequestParams
) -> bool:
    if isinstance(params, types.ElicitRequestURLParams):
        return offered is not None and offered.url is not None
    return offers_forms(offered)


def offers_forms(offered: types.ElicitationCapability | None) -> bool:
    """Returns whether a client with this capability can show forms to its user."""
    # An empty capability means forms (2025-06-18).
    return offered is not None and (offered.form is not None or offered.url is None)


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
        return WRONG_KIND


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
