"""Builds the gateway to the other servers in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from server.mcp.asking.client_requests import ClientRequests
from server.mcp.sessions import Sessions
from server.settings import Settings
from server.upstream.depth import allowed_servers
from server.upstream.no_gateway import NoGateway
from storage.library import Library
from tools.core.registry import ToolRegistry

if TYPE_CHECKING:
    from server.upstream.gateway import Gateway


def make_gateway(  # noqa: PLR0913  # the composition root hands over every part by name
    settings: Settings,
    environ: Mapping[str, str],
    *,
    registry: ToolRegistry,
    library: Library,
    sessions: Sessions,
    requests: ClientRequests,
    command: str,
) -> Gateway | NoGateway:
    """Builds the gateway.

    Args:
        settings: The settings.
        environ: The environment passed to servers started here.
        registry: The registry for their tools.
        library: Stores their listings and the pins of their tools.
        sessions: Maps calls to sessions.
        requests: Forwards their requests to the clients.
        command: How the user types `toolcrib`, for advice in error messages.
    """
    servers = allowed_servers(settings.servers, environ)
    if not servers:
        return NoGateway()
    from server.upstream.calling.questions import questions_of
    from server.upstream.connections.cached import Cached
    from server.upstream.connections.transport import Transports
    from server.upstream.gateway import Gateway
    from server.upstream.safety.admission import Admission
    from server.upstream.skills.held_skills import HeldSkills

    return Gateway(
        servers,
        registry,
        sessions.own,
        admission=Admission(registry, library.catalog.pins, settings.servers),
        transports=Transports(environ, proxy=settings.requests.proxy),
        cached=Cached(library.catalog.listings),
        skills=HeldSkills(library.catalog.pins),
        make_callbacks=partial(questions_of, requests),
        before_home=partial(requests.clients.wait_for, sessions.own),
        command=command,
    )
