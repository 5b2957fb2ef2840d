"""The desk: where what other servers ask is taken to the clients whose requests they work on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from starlette.requests import Request

from server.mcp.rounds import Round
from server.mcp.sessions import Sessions
from server.transport.auth import speaker_of
from server.upstream.calling.counterparts import Abilities, Counterparts
from server.upstream.calling.logs import opted_level
from server.upstream.calling.parked import ParkedCalls, Stay
from server.upstream.calling.relay import Relay
from storage.models import Identity
from tools.core.client import digest_of

if TYPE_CHECKING:
    from server.upstream.calling.questions import Questions

__all__ = ["Desk"]

FIRST_WORDS = frozenset({"notifications/initialized", "server/discover"})
"""With which a client says what it can be asked, before it calls anything."""

Context = ServerRequestContext[Any, Any]


class Desk:
    """Knows the client of each conversation, and makes what answers the servers of it.

    Args:
        sessions: Tells which conversation a request belongs to.
        identity: Whose requests these are where no token says it.

    Attributes:
        parked: Calls that go on while their clients are away.
    """

    def __init__(self, sessions: Sessions, identity: Identity) -> None:
        self.parked = ParkedCalls()
        self._sessions = sessions
        self._identity = identity
        self._counterparts = Counterparts()
        self._made: defaultdict[str, WeakSet[Questions]] = defaultdict(WeakSet)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Has calls go on; at the end they are given up."""
        async with self.parked.running():
            yield

    def callbacks(self, server: str, session_id: str) -> Questions:
        """What answers a server in a conversation, made for what its client can be asked now.

        Args:
            server: Name of the server in the settings.
            session_id: The conversation.
        """
        known = self._counterparts.get(session_id)
        made_for = Abilities() if known is None else known.abilities
        from server.upstream.calling.questions import Questions  # noqa: PLC0415  # on first use

        made = Questions(server, made_for, partial(self._counterparts.get, session_id))
        self._made[session_id].add(made)
        return made

    async def met(self, session_id: str) -> None:
        """Waits for the first word of a conversation's client, for a second at most."""
        await self._counterparts.met(session_id)

    def meet(self, ctx: Context) -> str:
        """The conversation of a request, whose client is known from now on."""
        session_id = self._conversation(ctx)
        self._counterparts.note(session_id, ctx)
        return session_id

    def relay(
        self,
        ctx: Context,
        this_round: Round,
        identity: Identity,
        called: tuple[str, Mapping[str, Any]],
    ) -> Relay:
        """The way from other servers to the client of a request.

        Args:
            ctx: The request.
            this_round: What came with it.
            identity: Whose it is.
            called: What is called, with its arguments.

        Raises:
            UnavailableError: If it goes on with a call that is not there any more.
        """
        session_id = self._sessions.of(ctx, identity).session_id
        known = self._counterparts.note(session_id, ctx)
        if known.abilities.handshake:
            return Relay(ctx, this_round, Stay(identity, ""), self.parked, known.level)
        name, arguments = called
        digest = digest_of(f"{session_id}/{name}", arguments, identity)
        stay = self.parked.stay(this_round.stay, identity, digest)
        stay.take(this_round.answers)
        return Relay(ctx, this_round, stay, self.parked, opted_level(ctx))

    def register(self, server: Server[Any]) -> None:
        """Has a server answer what clients say of themselves."""
        server.middleware.append(self._hear)
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    async def _hear(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Takes note of the client of this process as early as it can be known."""
        result = await call_next(ctx)
        if ctx.method in FIRST_WORDS and not isinstance(ctx.request, Request):
            self._counterparts.note(self._conversation(ctx), ctx)
        return result

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Takes note of what the client wants to hear; other servers are told when called."""
        self._counterparts.note(self._conversation(ctx), ctx).level = params.level
        return types.EmptyResult()

    async def _roots_changed(self, ctx: Context, _params: types.NotificationParams) -> None:
        for each in tuple(self._made.get(self._conversation(ctx), ())):
            await each.roots_changed()

    def _conversation(self, ctx: Context) -> str:
        return self._sessions.of(ctx, speaker_of(ctx, self._identity).identity).session_id
