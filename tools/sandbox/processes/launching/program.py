"""A program that runs, and what was done about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tools.sandbox.processes.launching.running import Running
from tools.sandbox.processes.models import Ending, Level

__all__ = ["Program"]


class Program:
    """A started program.

    Args:
        running: As the launcher has it.
        level: What confines it.
        notes: What there is to say of its start.
        finish: Called once when nothing of it is left; returns what there is to say then.

    Attributes:
        level: What confines it.
        notes: What somebody has to know who reads its results, a sentence each.
    """

    def __init__(
        self,
        running: Running,
        level: Level,
        notes: tuple[str, ...],
        finish: Callable[[], Awaitable[tuple[str, ...]]],
    ) -> None:
        self.level = level
        self.notes = notes
        self._running = running
        # A task of its own: it is finished with also where nobody waits for it.
        self._ending = asyncio.create_task(self._watch(finish))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._running.pid

    @property
    def stdout(self) -> int:
        """Descriptor that its standard output is read from, without blocking."""
        return self._running.stdout

    @property
    def stderr(self) -> int:
        """Descriptor that its standard error is read from, without blocking."""
        return self._running.stderr

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left, and protected files are put back."""
        return self._ending.done()

    async def wait(self) -> Ending:
        """Waits until nothing of it is left and protected files are put back."""
        return await asyncio.shield(self._ending)

    async def kill(self) -> None:
        """Ends it with everything that it has started."""
        await self._running.kill()
        await self.wait()

    async def aclose(self) -> None:
        """Ends it, and closes its descriptors."""
        try:
            await self.kill()
        finally:
            await self._running.aclose()

    async def _watch(self, finish: Callable[[], Awaitable[tuple[str, ...]]]) -> Ending:
        try:
            return await self._running.wait()
        finally:
            self.notes += await finish()
