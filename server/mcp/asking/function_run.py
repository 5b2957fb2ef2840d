"""The run of a function: what it asks reaches its client in either era, and it is run once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from server.mcp.asking.channels import Channel
from server.mcp.asking.client_requests import GONE, ClientRequest
from server.mcp.asking.known_clients import KnownClient
from server.mcp.asking.rounds import Round
from server.mcp.asking.suspended import SuspendedCall
from tools.core.asking.deadline import PausableDeadline
from tools.core.asking.peer import Capability


class FunctionRun:
    """The run of a function, as what it asks and calls sees it.

    Args:
        request: The request that began it.
        call: What of it goes on while the client is away; None while that waits.
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
        """The request that waits for it now; None while the client is away."""
        if self._request.is_away:
            return None
        return self._request.ctx if self._call is None else self._call.ctx

    @property
    def level(self) -> types.LoggingLevel | None:
        """From which level on its client wants to hear what is logged; None if it did not say."""
        return self._request.level

    def note_client(self) -> KnownClient:
        """Returns its client."""
        return self._request.note_client()

    def channel(self, deadline: PausableDeadline) -> Channel:
        """The channel to its client, for whoever works on a call of it until a deadline."""
        return (self._request if self._call is None else self._call).channel(deadline)

    async def ask(
        self,
        questions: Mapping[str, types.InputRequest],
        *,
        seconds: float,
        state: str | None = None,
    ) -> Mapping[str, types.InputResponse | types.ErrorData]:
        """Asks its client, and waits for the answers.

        Args:
            questions: What is asked, by keys under which a client may have answered already.
            seconds: How long a client that waits may take for each.
            state: For requests that are made again.

        Returns:
            The answers by the keys of the questions.
        """
        if self._call is None:
            return await self._request.ask(questions, seconds=seconds, state=state)
        return {key: await self._call.ask(each, key) or GONE for key, each in questions.items()}

    def note_missing(self, capability: Capability, message: str) -> None:
        """Takes note of what the client would have to offer, and of what the function is told."""
        if self.is_modern:
            self._request.suspended.missing[message] = capability

    async def changed(self, uri: str) -> None:
        """Tells whoever listens that a resource changed."""
        await self._request.changed(uri)


def round_of(request: ClientRequest | FunctionRun) -> Round | None:
    """What comes with a request that is made again with the answers; None of all others."""
    return request.this_round if isinstance(request, ClientRequest) and request.is_modern else None
