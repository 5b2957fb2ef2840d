"""Requests of clients: where what other servers ask is taken to the clients that they work for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakSet

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from server.mcp.asking.known_clients import KnownClient, KnownClients
from server.mcp.asking.rounds import Round
from server.mcp.asking.suspended import SuspendedRequest, SuspendedRequests
from server.mcp.logging import opted_level
from server.mcp.meta import asks_for_progress, forwarded
from server.mcp.sessions import Sessions
from server.transport.auth import principal_of
from storage.models import Identity
from tools.core.client import digest_of
from tools.core.nested import Repetition

__all__ = ["ClientRequest", "ClientRequests", "RootsListener"]

FIRST_MESSAGES = frozenset({"notifications/initialized", "server/discover"})
"""With which a client says what it can be asked, before it calls anything."""

Context = ServerRequestContext[Any, Any]
Called = tuple[str, Mapping[str, Any]]
"""A name, with arguments."""


class RootsListener(Protocol):
    """Hears that a client works in other directories."""

    async def roots_changed(self) -> None:
        """Passes that on."""


class ClientRequest:
    """One request of a client, and the way from other servers back to that client.

    What only a request that asks its client needs is made on first use.

    Args:
        ctx: The request.
        params: What came with it.
        identity: Whose it is.
        called: What is called, with its arguments.
        requests: The requests of all clients.

    Attributes:
        ctx: The request.
        all_suspended: Keeps calls going until their clients return.
        refusal: The error with which the call is answered, where the client acts on it itself.
    """

    def __init__(
        self,
        ctx: Context,
        params: types.InputResponseRequestParams,
        identity: Identity,
        called: Called,
        requests: ClientRequests,
    ) -> None:
        self.ctx = ctx
        self.all_suspended = requests.suspended
        self.refusal: MCPError | None = None
        self._params = params
        self._identity = identity
        self._called = called
        self._requests = requests

    @cached_property
    def this_round(self) -> Round:
        """What came with it, and what is asked before it is made again.

        Raises:
            MCPError: If its state was not given out here.
        """
        return Round(self._params)

    @cached_property
    def suspended(self) -> SuspendedRequest:
        """What is kept of it until it is made again.

        Raises:
            UnavailableError: If it continues a call that is not kept any more.
        """
        if not self.is_modern:
            return SuspendedRequest(self._identity, "")
        name, arguments = self._called
        said = f"{self._requests.session_of(self.ctx)}/{name}"
        digest = digest_of(said, arguments, self._identity)
        suspended = self.all_suspended.resume(self.this_round.suspension, self._identity, digest)
        suspended.take(self.this_round.answers)
        return suspended

    @cached_property
    def repetition(self) -> Repetition | None:
        """The results of the calls that it made before; None where it is not made again."""
        return Repetition(self.suspended.finished) if self.is_modern else None

    @property
    def is_modern(self) -> bool:
        """Whether its client is asked by ending the call (protocol 2026-07-28)."""
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    def note_client(self) -> KnownClient:
        """Returns its client, which other servers can ask from now on."""
        return self._requests.client_of(self.ctx)

    @property
    def level(self) -> types.LoggingLevel | None:
        """From which level on its client wants to hear what is logged; None if it did not say."""
        return opted_level(self.ctx) if self.is_modern else self.note_client().level

    @property
    def wants_progress(self) -> bool:
        """Whether its client hears how far the call is."""
        return asks_for_progress(self.ctx.meta)

    @property
    def can_be_asked(self) -> bool:
        """Whether its client can be asked anything."""
        capabilities = self.ctx.session.client_capabilities
        return capabilities is not None and any(
            (capabilities.elicitation, capabilities.sampling, capabilities.roots)
        )

    @property
    def meta(self) -> dict[str, Any]:
        """What its client told the server that works on it."""
        return forwarded(self.ctx.meta)

    def awaited(self) -> types.InputRequiredResult | None:
        """Returns what its client has to answer before it makes the call again; None if nothing.

        What continues until then is kept.
        """
        if not self._asks:
            return None
        self.this_round.suspension = self.all_suspended.keep(self.suspended)
        return self.this_round.awaited

    def end(self) -> None:
        """Cancels what continues of it, unless its client is to return for that."""
        if "suspended" in vars(self) and not self._asks:
            self.suspended.end()

    @property
    def _asks(self) -> bool:
        return "this_round" in vars(self) and self.this_round.asks


class ClientRequests:
    """The requests of all clients, and who the client of each conversation is.

    Args:
        sessions: Tells which conversation a request belongs to.
        identity: Whose requests these are where no token says it.

    Attributes:
        suspended: Those that wait for their clients to come back.
        clients: What is known of the client of each conversation.
    """

    def __init__(self, sessions: Sessions, identity: Identity) -> None:
        self.suspended = SuspendedRequests()
        self.clients = KnownClients()
        self._sessions = sessions
        self._identity = identity
        self._listeners: defaultdict[str, WeakSet[RootsListener]] = defaultdict(WeakSet)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Has calls go on; at the end they are given up."""
        async with self.suspended.running():
            yield

    def session_of(self, ctx: Context) -> str:
        """The conversation of a request."""
        return self._sessions.of(ctx, principal_of(ctx, self._identity).identity).session_id

    def client_of(self, ctx: Context) -> KnownClient:
        """The client of a request, which is known from now on."""
        return self.clients.note(self.session_of(ctx), ctx)

    def listen(self, session_id: str, listener: RootsListener) -> None:
        """Tells somebody, as long as they exist, when a client works in other directories."""
        self._listeners[session_id].add(listener)

    def open(
        self,
        ctx: Context,
        params: types.InputResponseRequestParams,
        identity: Identity,
        called: Called,
    ) -> ClientRequest:
        """Opens a request, or continues one.

        Args:
            ctx: The request.
            params: What came with it.
            identity: Whose it is.
            called: What is called, with its arguments.

        Raises:
            MCPError: If its state was not given out here.
            UnavailableError: If it continues a call that is not kept any more.
        """
        request = ClientRequest(ctx, params, identity, called, self)
        if params.request_state or params.input_responses:
            _ = request.suspended  # whoever waits for these answers has them before the call runs
        return request

    def register(self, server: Server[Any]) -> None:
        """Has a server answer what clients say of themselves."""
        server.middleware.append(self._note_early)
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    async def _note_early(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Takes note of the client of this process as early as it can be known."""
        result = await call_next(ctx)
        if ctx.method in FIRST_MESSAGES and not isinstance(ctx.request, Request):
            self.client_of(ctx)
        return result

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Takes note of what the client wants to hear; other servers are told when called."""
        self.client_of(ctx).level = params.level
        return types.EmptyResult()

    async def _roots_changed(self, ctx: Context, _params: types.NotificationParams) -> None:
        for each in tuple(self._listeners.get(self.session_of(ctx), ())):
            await each.roots_changed()
