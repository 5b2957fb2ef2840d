"""What is browsed, put together: ours, that of other servers, and who hears of changes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext

from server.mcp.asking.client_requests import ClientRequests
from server.mcp.profiles import Profiles
from server.mcp.prompts import Prompts
from server.mcp.resources import ContextResources
from server.upstream.browsing.offers import Offers
from server.upstream.browsing.prompts import GatewayPrompts
from server.upstream.browsing.resources import GatewayResources
from server.upstream.browsing.subscriptions import Subscriptions
from server.upstream.gateway import Gateway

__all__ = ["Browsing", "browse"]


@dataclass(frozen=True, slots=True)
class Browsing:
    """What answers whoever browses.

    Attributes:
        resources: Answers requests for resources.
        prompts: Answers requests for prompts, and completion.
        subscriptions: Tells of changes while it is running.
    """

    resources: GatewayResources
    prompts: GatewayPrompts
    subscriptions: Subscriptions


def browse(  # noqa: PLR0913  # the composition root hands over every part by name
    gateway: Gateway,
    *,
    resources: ContextResources,
    prompts: Prompts,
    requests: ClientRequests,
    profiles: Profiles,
    lists: Collection[str],
) -> Browsing:
    """Puts what other servers offer after our own.

    Args:
        gateway: The other servers.
        resources: Our own.
        prompts: The same.
        requests: Takes what the servers ask to the client.
        profiles: Who may see which servers.
        lists: Which lists change with the other servers: of tools, prompts and resources.
    """

    def admits(ctx: ServerRequestContext[Any, Any], server: str) -> bool:
        profile = profiles.of(ctx)
        return profile is None or profile.tool_set.admits_server(server)

    offers = Offers(gateway, requests, admits)
    all_resources = GatewayResources(resources, offers)
    subscriptions = Subscriptions(offers, all_resources, lists)
    gateway.on_change(subscriptions.changed)
    return Browsing(all_resources, GatewayPrompts(prompts, offers, all_resources), subscriptions)
