"""Applies edits of the settings file to the parts of a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from server.composition.current import CurrentSettings
from server.mcp.surface import Surface
from server.settings import Settings
from server.upstream.late_gateway import LateGateway
from tools.functions.files import FunctionFiles

if TYPE_CHECKING:
    from server.mcp.browsing.provider import Browsing

FOLLOW_SECONDS = 1.0
"""Interval for checking the settings file; each call checks it too."""


@dataclass(frozen=True, slots=True)
class Following:
    """The parts that change with the settings; policy and profiles read them at each call."""

    current: CurrentSettings
    functions: FunctionFiles
    surface: Surface
    gateway: LateGateway
    browsing: Browsing

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Applies edits in the background."""
        ends = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow, ends)
            yield
            ends.set()  # not cancelled: a gateway built meanwhile closes its connections

    async def _follow(self, ends: anyio.Event) -> None:
        applied = self.current.settings
        async with AsyncExitStack() as stack:
            while not ends.is_set():
                with anyio.move_on_after(FOLLOW_SECONDS):
                    await ends.wait()
                if self.current.is_edited:
                    await anyio.to_thread.run_sync(self.current.refresh)
                if (now := self.current.settings) is not applied:
                    await self._apply(applied, now, stack)
                    applied = now

    async def _apply(self, before: Settings, now: Settings, stack: AsyncExitStack) -> None:
        self.functions.paths = now.functions.paths
        self.surface.follow(now.servers, now.profiles)
        if now.servers != before.servers:
            await self.gateway.change(now.servers, stack)
        if now.profiles != before.profiles:
            self.browsing.subscriptions.changed("", {"tools", "prompts", "resources"})
