"""A gateway without servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio.lowlevel

if TYPE_CHECKING:
    from server.upstream.gateway import OnChange
    from server.upstream.upstream import Upstream
    from tools.agent.skillfiles.skill import Skill


class NoGateway:
    """A gateway without servers: avoids loading the code for connections at startup."""

    upstreams: Mapping[str, Upstream] = {}

    @asynccontextmanager
    async def running(self, *, eager: bool = True) -> AsyncIterator[None]:  # noqa: ARG002  # as of a gateway
        """Runs nothing."""
        yield

    def skills(self) -> Sequence[Skill]:
        """Returns no skills."""
        return ()

    def on_change(self, listener: OnChange) -> None:
        """Ignores the listener: nothing changes."""

    async def ready(self, awaits: Callable[[str], bool] | None = None) -> None:  # noqa: ARG002  # as of a gateway
        """Returns at once."""
        await anyio.lowlevel.checkpoint()

    async def find(self, name: str) -> None:  # noqa: ARG002  # as of a gateway
        """Does nothing: there are no servers."""
        await anyio.lowlevel.checkpoint()
