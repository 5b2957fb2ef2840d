"""Lists all servers once, in parallel, for commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.settings.gateway import ServerSettings
from server.upstream.connections.connect import Opener, Transports
from server.upstream.connections.connection import Callbacks
from server.upstream.connections.link import problem_of
from server.upstream.connections.listing import Cached, Listing, list_all
from server.upstream.upstream import State
from tools.core.errors import ToolError

LEAVE_SECONDS = 2.5
"""Time for closing all sessions."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """Whether a server could be used, and what it offers."""

    state: State  # off if it is not enabled
    problem: str  # why it could not, as the rest of a sentence
    listing: Listing | None  # what it offers, or last offered; None if it never answered


async def list_servers(
    servers: Mapping[str, ServerSettings], transports: Transports, cached: Cached
) -> dict[str, ServerStatus]:
    """Connects to each enabled server and lists it, for at most its `start_timeout`.

    Closes the transports, stores new listings, and falls back on earlier ones.
    """
    found: dict[str, ServerStatus] = {}

    async def look(name: str, settings: ServerSettings) -> None:
        before = await cached.get(name, settings)
        if not settings.enabled:
            found[name] = ServerStatus(State.OFF, "", before)
            return
        opener = Opener(name, settings, transports, lambda _server, _session: Callbacks())
        try:
            listing = await _list(opener, homes, settings.start_timeout)
        except TimeoutError:
            problem = f"did not say within {settings.start_timeout:g} s what it offers"
            found[name] = ServerStatus(State.DOWN, problem, before)
        except ToolError as error:
            found[name] = ServerStatus(State.DOWN, error.message, before)
        except (MCPError, ValidationError) as error:
            found[name] = ServerStatus(State.DOWN, await problem_of(error, None), before)
        else:
            found[name] = ServerStatus(State.UP, "", listing)
            if listing.differs_from(before):
                await cached.put(name, settings, listing)

    try:
        async with anyio.create_task_group() as homes:
            async with anyio.create_task_group() as group:
                for name, settings in servers.items():
                    group.start_soon(look, name, settings)
            homes.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await transports.aclose()
    return {name: found[name] for name in servers}


async def _list(opener: Opener, homes: TaskGroup, seconds: float) -> Listing:
    connection = await opener.open("list_servers", homes)
    try:
        with anyio.fail_after(seconds):
            async with connection.used():
                return await list_all(connection)
    finally:
        connection.close()
        with anyio.move_on_after(LEAVE_SECONDS, shield=True):
            await connection.closed.wait()
