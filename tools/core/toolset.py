"""Tool sets: a named selection of tools."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.core.spec import ToolOffer

__all__ = ["ToolSet"]


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools that somebody may find and call.

    Attributes:
        name: What the user calls it.
        allow: Patterns of names, `server:NAME` or `tag:TAG`; empty means every tool.
        deny: The same, of tools that are left out whatever is allowed.
    """

    name: str
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def admits(self, offer: ToolOffer) -> bool:
        """Whether a tool is one of them."""
        if any(_fits(pattern, offer) for pattern in self.deny):
            return False
        return not self.allow or any(_fits(pattern, offer) for pattern in self.allow)


def _fits(pattern: str, offer: ToolOffer) -> bool:
    kind, _, value = pattern.partition(":")
    match kind:
        case "server":
            return fnmatchcase(offer.source, f"upstream:{value}")
        case "tag":
            return value in offer.tags
    return fnmatchcase(offer.name, pattern)
