"""The relay: the way from another server back to the client whose request it is working on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext

from server.rounds import Round

__all__ = ["Relay"]


@dataclass(frozen=True, slots=True)
class Relay:
    """A request to us.

    Attributes:
        ctx: What the SDK knows of it.
        this_round: What came with it, and what is asked before it comes again.
    """

    ctx: ServerRequestContext[Any, Any]
    this_round: Round
