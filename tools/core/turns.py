"""Whose turn it is: reads run side by side, writes one after another."""

from __future__ import annotations

from collections import defaultdict

import anyio

from tools.core.spec import Effect, ToolScope, ToolSpec

__all__ = ["Turns"]

PARALLEL_READS = 16
"""Reads of one source that run at the same time."""


class Turns:
    """Hands out turns in the order of asking, so that nobody starves.

    The reads of one source of tools share a number of places; writes get one place a scope and
    source. A read never waits for a write: the storage gives each read a consistent state, and
    files are replaced in one step.
    """

    def __init__(self) -> None:
        self._reads: defaultdict[str, anyio.Semaphore] = defaultdict(
            lambda: anyio.Semaphore(PARALLEL_READS)
        )
        self._writes: defaultdict[tuple[ToolScope, str], anyio.Semaphore] = defaultdict(
            lambda: anyio.Semaphore(1)
        )

    def of(self, spec: ToolSpec) -> anyio.Semaphore:
        """The place that a call of this tool holds while it runs; enter it with `async with`."""
        if Effect.WRITE in spec.effects:
            return self._writes[spec.scope, spec.source]
        return self._reads[spec.source]
