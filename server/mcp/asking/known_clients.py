"""KnownClients: stores the client of each conversation, for the servers behind us."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

MOST = 1_000
"""Maximum number of conversations, as in `server.mcp.sessions`."""

FIRST_WORD = 1.0
"""Seconds to wait for a client that starts together with this process."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client can be asked; declared on its behalf to other servers.

    Attributes:
        handshake: Whether it can be asked during a call (protocols until 2025-11-25).
    """

    elicitation: bool = False
    sampling: bool = False
    sampling_tools: bool = False
    roots: bool = False
    handshake: bool = False

    @classmethod
    def of(cls, session: ServerSession) -> Abilities:
        """Returns the abilities of the client of a session."""
        said = session.client_capabilities or types.ClientCapabilities()
        return cls(
            elicitation=said.elicitation is not None,
            sampling=said.sampling is not None,
            sampling_tools=said.sampling is not None and said.sampling.tools is not None,
            roots=said.roots is not None,
            handshake=session.protocol_version not in MODERN_PROTOCOL_VERSIONS,
        )


@dataclass(slots=True)
class KnownClient:
    """The client of a conversation.

    Attributes:
        session: Its session, for messages outside of a request; None if it cannot be reached.
        level: The minimum log level that it wants; None if it set none.
    """

    abilities: Abilities
    session: ServerSession | None = None
    level: types.LoggingLevel | None = None


class KnownClients:
    """Remembers clients; forgets the least recently active first."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownClient] = OrderedDict()
        self._first: dict[str, anyio.Event] = {}

    def get(self, session_id: str) -> KnownClient | None:
        """Returns the client of a conversation; None if it has not sent anything yet."""
        return self._known.get(session_id)

    def note(self, session_id: str, ctx: ServerRequestContext[Any, Any]) -> KnownClient:
        """Records the client of a request."""
        abilities = Abilities.of(ctx.session)
        found = self._known.setdefault(session_id, KnownClient(abilities))
        found.abilities = abilities
        found.session = ctx.session if abilities.handshake else None
        self._known.move_to_end(session_id)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        if (waiting := self._first.pop(session_id, None)) is not None:
            waiting.set()
        return found

    async def wait_for(self, session_id: str) -> None:
        """Waits for the first message of a conversation's client, for up to a second."""
        if session_id not in self._known:
            with anyio.move_on_after(FIRST_WORD):
                await self._first.setdefault(session_id, anyio.Event()).wait()
