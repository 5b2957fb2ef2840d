"""Surveys all servers once, in parallel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.settings.gateway import ServerSettings
from server.upstream.connections.cached import Cached
from server.upstream.connections.connection import Callbacks
from server.upstream.connections.failures import problem_of
from server.upstream.connections.health import State
from server.upstream.connections.listing import Listing, list_all
from server.upstream.connections.opening import Opener
from server.upstream.connections.transport import Transports
from tools.core.errors import ToolError

LEAVE_SECONDS = 2.5
"""Time for closing all sessions."""

_SESSION = "survey"


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The result of surveying one server.

    Attributes:
        state: Whether it could be used; off if it is not enabled.
        problem: Why it could not, as the rest of a sentence; empty if it could.
        listing: What it offers, or last offered; None if it never answered.
    """

    state: State
    problem: str
    listing: Listing | None


async def survey(
    servers: Mapping[str, ServerSettings], transports: Transports, cached: Cached
) -> dict[str, Surveyed]:
    """Connects to each enabled server and lists it.

    Args:
        servers: The servers in the settings.
        transports: Builds the links; closed at the end.
        cached: Stores their listings, and provides earlier ones.

    Returns:
        The results in the order of the settings; each server had its `start_timeout`.
    """
    found: dict[str, Surveyed] = {}
    try:
        async with anyio.create_task_group() as homes:
            async with anyio.create_task_group() as group:
                for name, settings in servers.items():
                    group.start_soon(_look, name, settings, transports, cached, homes, found)
            homes.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await transports.aclose()
    return {name: found[name] for name in servers}


async def _look(  # noqa: PLR0913, PLR0917  # what the survey knows
    name: str,
    settings: ServerSettings,
    transports: Transports,
    cached: Cached,
    homes: TaskGroup,
    found: dict[str, Surveyed],
) -> None:
    before = await cached.get(name, settings)
    if not settings.enabled:
        found[name] = Surveyed(State.OFF, "", before)
        return
    opener = Opener(name, settings, transports, lambda _server, _session: Callbacks())
    try:
        listing = await _ask(opener, homes, settings.start_timeout)
    except TimeoutError:
        problem = f"did not say within {settings.start_timeout:g} s what it offers"
        found[name] = Surveyed(State.DOWN, problem, before)
    except ToolError as error:
        found[name] = Surveyed(State.DOWN, error.message, before)
    except (MCPError, ValidationError) as error:
        found[name] = Surveyed(State.DOWN, await problem_of(error, None), before)
    else:
        found[name] = Surveyed(State.UP, "", listing)
        if listing.differs_from(before):
            await cached.put(name, settings, listing)


async def _ask(opener: Opener, homes: TaskGroup, seconds: float) -> Listing:
    connection = await opener.open(_SESSION, homes)
    try:
        with anyio.fail_after(seconds):
            async with connection.used():
                return await list_all(connection)
    finally:
        connection.close()
        with anyio.move_on_after(LEAVE_SECONDS, shield=True):
            await connection.closed.wait()
