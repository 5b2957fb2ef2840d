"""Detects when a server's listing must be refreshed."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError

from server.upstream.connections.connection import Connection

SETTLE_SECONDS = 0.2
"""Time to wait for further changes after the first; they often come in series."""

SHARE = 5
"""Minimum ratio of the wait before the next listing to the duration of the last."""

_LISTS = (
    types.ToolListChangedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)


class Changes:
    """Decides when to list what a connection's server offers: first at once.

    Args:
        connection: The connection.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._happened = anyio.Event()
        self._asked_at = 0.0

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """Receives notifications during the block."""
        self._connection.observer = self._hear
        try:
            async with anyio.create_task_group() as group:
                if self._connection.is_modern:
                    group.start_soon(self._listen)
                yield
                group.cancel_scope.cancel()
        finally:
            self._connection.observer = None

    async def next(self, patience: float = math.inf) -> bool:
        """Waits until the listing is due; returns False once the connection has closed.

        Args:
            patience: Seconds after which it is due in any case.
        """
        if not self._asked_at:
            self._asked_at = time.monotonic()
            return self._connection.is_open
        took = time.monotonic() - self._asked_at
        with anyio.move_on_after(patience):
            await self._happened.wait()
        with anyio.move_on_after(SETTLE_SECONDS + SHARE * took):
            await self._connection.closed.wait()
        self._happened = anyio.Event()
        self._asked_at = time.monotonic()
        return self._connection.is_open

    def _hear(self, notification: types.ServerNotification | None) -> None:
        if notification is None or isinstance(notification, _LISTS):
            self._happened.set()

    async def _listen(self) -> None:
        """Subscribes to changes at a modern server while the connection is open.

        Its notifications also reach the connection's listeners. While the stream is lost, any
        notification may be missed.
        """
        has = self._connection.client.server_capabilities
        while self._connection.is_open:
            try:
                async with self._connection.client.listen(
                    tools_list_changed=has.tools is not None,
                    prompts_list_changed=has.prompts is not None,
                    resources_list_changed=has.resources is not None,
                ) as subscription:
                    async for _ in subscription:
                        self._happened.set()
            except SubscriptionLost:
                await anyio.sleep(1)
                self._happened.set()
            except (MCPError, TimeoutError):  # not supported, or it has ended
                return
            else:
                return
