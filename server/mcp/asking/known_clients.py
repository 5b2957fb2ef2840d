"""KnownClients: what is known of the client of each conversation, for the servers behind us."""

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
"""Conversations that are kept in mind, as `server.mcp.sessions` does."""

FIRST_WORD = 1.0
"""Seconds that are waited for a client that was just started with this process."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client can be asked, and how: what is declared for it to another server.

    Attributes:
        elicitation: Whether its person can be asked.
        sampling: Whether its model can be asked.
        sampling_tools: Whether its model can be offered tools.
        roots: Whether it says which directories it works in.
        handshake: Whether it can be asked in the middle of a call (protocols until 2025-11-25).
    """

    elicitation: bool = False
    sampling: bool = False
    sampling_tools: bool = False
    roots: bool = False
    handshake: bool = False

    @classmethod
    def of(cls, session: ServerSession) -> Abilities:
        """Those of the client of a session."""
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
        abilities: What it can be asked.
        session: Its session, by which it is reached outside of a request; None where it cannot be.
        level: From which level on it wants to hear what is logged; None if it did not say.
    """

    abilities: Abilities
    session: ServerSession | None = None
    level: types.LoggingLevel | None = None


class KnownClients:
    """Keeps in mind what clients said of themselves; those longest silent are forgotten first."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownClient] = OrderedDict()
        self._first: dict[str, anyio.Event] = {}

    def get(self, session_id: str) -> KnownClient | None:
        """What is known of the client of a conversation; None if it said nothing yet."""
        return self._known.get(session_id)

    def note(self, session_id: str, ctx: ServerRequestContext[Any, Any]) -> KnownClient:
        """Takes note of who asks."""
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
        """Waits for the first word of a conversation's client, for a second at most."""
        if session_id not in self._known:
            with anyio.move_on_after(FIRST_WORD):
                await self._first.setdefault(session_id, anyio.Event()).wait()
