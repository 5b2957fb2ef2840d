"""The relay: the way from another server back to the client whose request it is working on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from server.mcp.rounds import Round
from server.upstream.calling.meta import asks_for_progress, handed_on

if TYPE_CHECKING:
    from server.upstream.calling.parked import ParkedCalls, Stay

__all__ = ["Relay"]


@dataclass(frozen=True, slots=True)
class Relay:
    """A request to us.

    Attributes:
        ctx: What the SDK knows of it.
        this_round: What came with it, and what is asked before it comes again.
        stay: What is kept here until it comes again.
        parked: Where calls go on meanwhile.
        level: From which level on its client wants to hear what is logged; None if it did not say.
    """

    ctx: ServerRequestContext[Any, Any]
    this_round: Round
    stay: Stay
    parked: ParkedCalls
    level: types.LoggingLevel | None = None

    @property
    def is_modern(self) -> bool:
        """Whether its client is asked by ending the call (protocol 2026-07-28)."""
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def wants_progress(self) -> bool:
        """Whether its client hears how far the call is."""
        return asks_for_progress(self.ctx.meta)

    @property
    def can_be_asked(self) -> bool:
        """Whether its client can be asked anything."""
        said = self.ctx.session.client_capabilities
        return said is not None and any((said.elicitation, said.sampling, said.roots))

    @property
    def meta(self) -> dict[str, Any]:
        """What its client told the server that works on it."""
        return handed_on(self.ctx.meta)

    def awaited(self) -> types.InputRequiredResult | None:
        """What its client is to answer before it makes the call again; None if nothing.

        What goes on until then is kept.
        """
        if self.this_round.asks:
            self.this_round.stay = self.parked.keep(self.stay)
        return self.this_round.awaited

    def end(self) -> None:
        """Gives up what goes on of it, unless its client is to come back for that."""
        if not self.this_round.asks:
            self.stay.end()
