"""Which programs run in a root at the same time: many together, or one alone."""

from __future__ import annotations

import anyio


class Occupancy:
    """Counts those that are inside; one that is alone keeps others waiting."""

    def __init__(self) -> None:
        self._inside = 0
        self._alone: anyio.Event | None = None

    async def enter(self, *, alone: bool) -> bool:
        """Enters, as soon as nobody is alone inside.

        Args:
            alone: Whether to be alone, should nobody be inside.

        Returns:
            Whether it is alone, until it leaves.
        """
        while self._alone is not None:
            await self._alone.wait()
        if alone and not self._inside:
            self._alone = anyio.Event()
        self._inside += 1
        return self._alone is not None

    def leave(self) -> None:
        """Leaves."""
        self._inside -= 1
        if self._alone is not None:
            self._alone.set()
            self._alone = None
