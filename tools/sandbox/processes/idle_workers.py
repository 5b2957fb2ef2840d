"""Background tasks of pools of workers, and workers that end when they stay idle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

IDLE_SECONDS = 300.0  # seconds that an idle worker waits for work
WorkerT = TypeVar("WorkerT")


class Background:
    """A task group that exists from its first use until it is closed."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._ready = anyio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def group(self) -> TaskGroup:
        """Returns the group, starting it on first use."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        await self._ready.wait()
        return cast("TaskGroup", self._group)

    async def aclose(self) -> None:
        """Cancels its tasks, and waits for their end."""
        if self._serving is not None:
            self._serving.cancel()
            with suppress(asyncio.CancelledError):
                await self._serving

    async def _serve(self) -> None:
        async with anyio.create_task_group() as self._group:
            self._ready.set()
            await anyio.sleep_forever()


@dataclass(eq=False, slots=True)
class _Idle(Generic[WorkerT]):
    """A worker, for the time in which it is idle."""

    worker: WorkerT
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class IdleWorkers(Generic[WorkerT]):
    """Keeps idle workers, and ends one that nothing takes for `IDLE_SECONDS`."""

    def __init__(self, end: Callable[[WorkerT], Awaitable[None]]) -> None:
        self._end = end
        self._idle: list[_Idle[WorkerT]] = []
        self._background = Background()

    def __len__(self) -> int:
        return len(self._idle)

    def __iter__(self) -> Iterator[WorkerT]:
        return (each.worker for each in self._idle)

    async def put(self, worker: WorkerT) -> None:
        """Keeps a worker."""
        idle = _Idle(worker)
        self._idle.append(idle)
        (await self._background.group()).start_soon(self._expire, idle)

    def take(self) -> WorkerT | None:
        """Returns the worker that was used last; None if all are busy."""
        if not self._idle:
            return None
        idle = self._idle.pop()
        idle.scope.cancel()
        return idle.worker

    async def aclose(self) -> None:
        """Ends the workers."""
        await self._background.aclose()
        while (worker := self.take()) is not None:
            await self._end(worker)

    async def _expire(self, idle: _Idle[WorkerT]) -> None:
        with idle.scope:
            await anyio.sleep(IDLE_SECONDS)
            self._idle.remove(idle)
            await self._end(idle.worker)
