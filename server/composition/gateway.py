"""The gateway to the other servers of the settings."""

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
    """Makes what connects to them.

    Args:
        settings: What can be set.
        environ: The environment, as those that are started here see it.
        registry: Where their tools are kept.
        library: Keeps what they offered, and the pins of their tools.
        sessions: Which conversation a call belongs to.
        requests: Takes what they ask to the clients.
        command: What the user types for `toolcrib`, where a failure tells them to run it.
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
