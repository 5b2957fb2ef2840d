"""Coordinates the programs in a root: either many together, or one alone."""

from __future__ import annotations

import anyio


class Occupancy:
    """Counts the programs inside; one that is alone keeps others waiting."""

    def __init__(self) -> None:
        self._inside = 0
        self._alone: anyio.Event | None = None

    async def enter(self, *, alone: bool) -> bool:
        """Enters as soon as no program inside is alone.

        Args:
            alone: Whether to be alone if no program is inside.

        Returns:
            Whether it is alone until it leaves.
        """
        while self._alone is not None:
            await self._alone.wait()
        if alone and not self._inside:
            self._alone = anyio.Event()
        self._inside += 1
        return self._alone is not None

    def leave(self) -> None:
        """Leaves, and lets waiting programs in."""
        self._inside -= 1
        if self._alone is not None:
            self._alone.set()
            self._alone = None
