"""Upstreams: each other server of the settings, its connections, and what it offers."""

from __future__ import annotations

import logging

import anyio
from anyio.abc import TaskGroup

from server.gateway_settings import ServerSettings
from server.upstream.connection import Callbacks, Connection
from server.upstream.listing import Listing, list_all
from tools.core.errors import UnavailableError

__all__ = ["Upstream"]

_logger = logging.getLogger("toolcrib")


class Upstream:
    """Another server.

    Args:
        name: What the settings call it.
        settings: How it is reached.

    Attributes:
        name: What the settings call it.
        settings: How it is reached.
        listing: What it offered when it was last asked; None before.
        problem: Why it cannot be reached; empty while it can.
    """

    def __init__(self, name: str, settings: ServerSettings) -> None:
        self.name = name
        self.settings = settings
        self.listing: Listing | None = None
        self.problem = ""
        self._group: TaskGroup | None = None
        self._connections: dict[str, Connection] = {}
        self._connecting = anyio.Lock()

    def run_in(self, group: TaskGroup) -> None:
        """Has its connections live in a task group from now on."""
        self._group = group

    async def connection(self, session_id: str) -> Connection:
        """The connection of one conversation, which is opened where there is none.

        Raises:
            UnavailableError: If the server cannot be reached; it says why and what to do.
        """
        async with self._connecting:
            found = self._connections.get(session_id)
            if found is None or found.closed.is_set():
                found = self._connections[session_id] = await self._opened()
            return found

    async def refresh(self, session_id: str) -> Listing:
        """Asks it what it offers.

        Raises:
            UnavailableError: If the server cannot be reached.
        """
        connection = await self.connection(session_id)
        self.listing = await list_all(connection.client)
        return self.listing

    async def _opened(self) -> Connection:
        if self._group is None:
            raise UnavailableError(f"The server {self.name!r} is not run by this process.")
        connection = Connection(self.settings, Callbacks())
        try:
            await connection.open(self._group)
        except Exception as error:
            self.problem = str(error) or type(error).__name__
            raise UnavailableError(
                f"The server {self.name!r} cannot be reached: {self.problem}",
                next_actions=["Ask the user to look at `toolcrib servers`."],
            ) from error
        self.problem = ""
        return connection
