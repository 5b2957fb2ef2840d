"""Builds what clients browse in addition to tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from server.mcp.asking.client_requests import ClientRequests
from server.mcp.browsing.handlers import ResourceHandlers
from server.mcp.profiles import Profiles
from server.mcp.prompts import Prompts
from server.settings import Settings
from server.upstream.no_gateway import NoGateway
from tools.core.client import Sampler
from tools.functions.files import LISTS, FunctionFiles
from tools.functions.programs.created import CreatedTools

if TYPE_CHECKING:
    from server.mcp.browsing.browsing import Browsing
    from server.upstream.gateway import Gateway


def make_browsing(  # noqa: PLR0913  # the composition root hands over every part by name
    settings: Settings,
    gateway: Gateway | NoGateway,
    functions: FunctionFiles,
    *,
    resources: ResourceHandlers,
    prompts: Prompts,
    requests: ClientRequests,
    profiles: Profiles,
    sampler: Sampler | None,
    tools_change: Callable[[], bool],
    created: CreatedTools,
    lists_created: bool,
) -> Browsing:
    """Combines the offers of functions and other servers with our own.

    Args:
        settings: The settings.
        gateway: The other servers.
        functions: The function files.
        resources: Our own resources.
        prompts: Our own prompts.
        requests: Forwards requests to the client.
        profiles: The profiles that restrict clients.
        sampler: The model for clients without sampling.
        tools_change: Returns whether the tool list changes with the other servers.
        created: Reports changes of created tools.
        lists_created: Whether created tools are listed.
    """
    changing = {"resources", *["tools"] * lists_created}  # skills can be saved at any time
    if settings.functions.paths:
        changing |= set(LISTS.values())
    from server.mcp.browsing.browsing import browse_functions
    from server.mcp.browsing.offered_calls import OfferedCalls
    from server.mcp.browsing.skill_changes import SkillChanges

    calls = OfferedCalls(requests, profiles, functions.loaded, sampler)
    own = browse_functions(
        functions.offered,
        calls,
        resources=resources,
        prompts=prompts,
        skills=SkillChanges(prompts.skills),
    )
    if isinstance(gateway, NoGateway):
        browsing = own.browsing(changing)
    else:
        from server.upstream.browsing.browsing import browse

        lists = {"prompts", "resources"} if gateway.upstreams else set()
        if lists and tools_change():
            lists.add("tools")
        browsing = browse(
            gateway, own, requests=requests, profiles=profiles, lists=lists, changing=changing
        )
    requests.changed = browsing.changed
    functions.on_change(lambda kinds: browsing.subscriptions.changed("", kinds))
    created.on_change(lambda: browsing.subscriptions.changed("", {"tools"}))
    return browsing
