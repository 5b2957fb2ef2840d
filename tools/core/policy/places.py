"""Rules about places: judged of what a path turned out to be when it was opened."""

from __future__ import annotations

from typing import Protocol

__all__ = ["PlaceRules"]


class PlaceRules(Protocol):
    """What the rules say of the files that one call opens."""

    def check(self, path: str, *, writing: bool) -> None:
        """Raises if the call may not use a place.

        Args:
            path: Where it really is, relative to the root, without links.
            writing: Whether it is to be written.

        Raises:
            PermissionDeniedError: If a rule denies it, or asks about it and the person was asked
                about another place.
        """

    def hides(self, path: str) -> bool:
        """Whether a listing or a search leaves a place out, with all that is beneath it."""
