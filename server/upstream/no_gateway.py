"""What stands in the gateway's place where the settings name no other server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio.lowlevel

if TYPE_CHECKING:
    from server.upstream.gateway import OnChange
    from server.upstream.upstream import Upstream
    from tools.agent.skillfiles.skill import Skill


class NoGateway:
    """A gateway to no server: a start without any loads nothing of what it takes to reach one.

    Attributes:
        upstreams: None.
    """

    upstreams: Mapping[str, Upstream] = {}

    @asynccontextmanager
    async def running(self, *, eager: bool = True) -> AsyncIterator[None]:  # noqa: ARG002  # as of a gateway
        """Runs nothing."""
        yield

    def skills(self) -> Sequence[Skill]:
        """There are none."""
        return ()

    def on_change(self, listener: OnChange) -> None:
        """Nothing changes."""

    async def ready(self) -> None:
        """All that there is, is known."""
        await anyio.lowlevel.checkpoint()

    async def find(self, name: str) -> None:  # noqa: ARG002  # as of a gateway
        """There is nowhere to look."""
        await anyio.lowlevel.checkpoint()
