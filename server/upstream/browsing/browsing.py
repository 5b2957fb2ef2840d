"""What is browsed, put together: ours, that of other servers, and who hears of changes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mcp.server.context import ServerRequestContext

from server.mcp.asking.client_requests import ClientRequests
from server.mcp.browsing.browsing import Browsing, OwnBrowsing
from server.mcp.browsing.subscriptions import Subscriptions
from server.mcp.profiles import Profiles
from server.upstream.browsing.offers import Offers
from server.upstream.browsing.prompts import GatewayPrompts
from server.upstream.browsing.resources import GatewayResources
from server.upstream.browsing.watcher import GatewayWatcher
from server.upstream.browsing.watches import Watches
from server.upstream.gateway import Gateway


def browse(  # noqa: PLR0913  # the composition root hands over every part by name
    gateway: Gateway,
    own: OwnBrowsing,
    *,
    requests: ClientRequests,
    profiles: Profiles,
    lists: Collection[str],
    changing: Collection[str],
) -> Browsing:
    """Puts what other servers offer after our own.

    Args:
        gateway: The other servers.
        own: Our own.
        requests: Takes what the servers ask to the client.
        profiles: Who may see which servers.
        lists: Which lists change with the other servers: of tools, prompts and resources.
        changing: Which lists change by themselves too.
    """

    def admits(ctx: ServerRequestContext[Any, Any], server: str) -> bool:
        profile = profiles.of(ctx)
        return profile is None or profile.tool_set.admits_server(server)

    offers = Offers(gateway, requests, admits)
    resources = GatewayResources(own.resources, offers)
    watches = Watches()
    watcher = GatewayWatcher(offers, resources, watches)
    subscriptions = Subscriptions({*lists, *changing}, (*own.watchers, watcher), admits)
    gateway.on_change(
        lambda server, kinds: subscriptions.changed(server, kinds.intersection(lists))
    )
    prompts = GatewayPrompts(own.prompts, offers, resources)
    told = subscriptions, own.changes.changed
    return Browsing(resources, prompts, *told, (watches, subscriptions), own.skills)
