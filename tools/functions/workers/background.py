"""Runs tasks that outlive the call that needs them first."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

import anyio
from anyio.abc import TaskGroup


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
