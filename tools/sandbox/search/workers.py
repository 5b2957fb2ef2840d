"""The worker processes: one waits for the next search, several search side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from tools.sandbox.search.worker_process import WorkerProcess

__all__ = ["Workers"]

AT_ONCE = 4
"""Searches that run side by side."""


class Workers:
    """Lends worker processes, one to each search."""

    def __init__(self) -> None:
        self._idle: list[WorkerProcess] = []
        self._turns = anyio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[WorkerProcess]:
        """A worker for the block; one that was left without an answer is killed after it."""
        async with self._turns:
            worker = await self._take()
            try:
                yield worker
            finally:
                if worker.is_ready and not self._idle:
                    self._idle.append(worker)
                else:
                    await worker.aclose()

    async def aclose(self) -> None:
        """Ends the one that waits."""
        while self._idle:
            await self._idle.pop().aclose()

    async def _take(self) -> WorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_ready:
                return worker
            await worker.aclose()
        return await WorkerProcess.start()
