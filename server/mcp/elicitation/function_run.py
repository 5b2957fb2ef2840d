"""The run of a function: forwards its questions to the client in either era, and runs it once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from server.mcp.elicitation.channels import Channel
from server.mcp.elicitation.client_requests import GONE, ClientRequest
from server.mcp.elicitation.rounds import Round
from server.mcp.elicitation.suspended import SuspendedCall
from server.mcp.sessions import KnownClient
from tools.core.calling.call import PausableDeadline
from tools.core.elicitation.asker import Capability


class FunctionRun:
    """The run of a function, as its questions and calls see it.

    Args:
        call: The part that continues while the client is away; None while the client waits.
    """

    def __init__(self, request: ClientRequest, call: SuspendedCall[Any] | None = None) -> None:
        self.is_modern = request.is_modern
        self.capabilities = request.capabilities
        self.offers_forms = request.offers_forms
        self.offers_sampling = request.offers_sampling
        self.meta = request.meta
        self.wants_progress = request.wants_progress
        self.client = request.conversation.client
        self._request = request
        self._call = call

    @property
    def ctx(self) -> ServerRequestContext[Any, Any] | None:
        """The request that waits for it; None while the client is away."""
        if self._request.is_away:
            return None
        return self._request.ctx if self._call is None else self._call.ctx

    @property
    def level(self) -> types.LoggingLevel | None:
        """The minimum log level that its client wants; None if it set none."""
        return self._request.level

    def note_client(self) -> KnownClient:
        """Returns its client."""
        return self._request.note_client()

    def channel(self, deadline: PausableDeadline) -> Channel:
        """Returns the channel to its client, for a server working on a call until a deadline."""
        return (self._request if self._call is None else self._call).channel(deadline)

    async def ask(
        self,
        questions: Mapping[str, types.InputRequest],
        *,
        seconds: float,
        state: str | None = None,
    ) -> Mapping[str, types.InputResponse | types.ErrorData]:
        """Asks its client and waits for the answers.

        Args:
            questions: The questions, by keys under which the client may have answered already.
            state: Used only by requests that are retried.
        """
        if self._call is None:
            return await self._request.ask(questions, seconds=seconds, state=state)
        return {key: await self._call.ask(each, key) or GONE for key, each in questions.items()}

    def note_missing(self, capability: Capability, message: str) -> None:
        """Records a missing client capability and the message given to the function."""
        if self.is_modern:
            self._request.suspended.missing[message] = capability

    async def changed(self, uri: str) -> None:
        """Notifies subscribers that a resource changed."""
        await self._request.changed(uri)


def round_of(request: ClientRequest | FunctionRun) -> Round | None:
    """Returns the round of a request that is retried with answers; None for others."""
    return request.this_round if isinstance(request, ClientRequest) and request.is_modern else None
