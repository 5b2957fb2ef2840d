"""Watching resources of other servers, for the clients that asked to hear of their changes."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.subscriptions import Hear, Unwatch
from server.upstream.browsing.offers import Offers
from server.upstream.browsing.resources import GatewayResources
from server.upstream.browsing.watches import Watched, Watches

Context = ServerRequestContext[Any, Any]


class GatewayWatcher:
    """Finds the server that has a resource and tells of its changes; see Watcher.

    Args:
        offers: The other servers, as each caller may see them.
        resources: Tells whose an address is.
        watches: Keeps resources watched while it is running.
    """

    def __init__(self, offers: Offers, resources: GatewayResources, watches: Watches) -> None:
        self._offers = offers
        self._resources = resources
        self._watches = watches

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Has somebody told when a resource of another server may have changed.

        Raises:
            MCPError: If its server cannot be reached, or does not tell of changes.
        """
        session_id = self._offers.conversation(ctx)
        failure: MCPError | None = None
        for upstream, own in await self._resources.owners(ctx, uri):
            resource = Watched(upstream, session_id, own)
            try:
                await self._watches.add(resource, (who, uri), hear)
            except MCPError as error:
                failure = failure or error
            else:
                return partial(self._watches.remove, resource, (who, uri))
        if failure is not None:
            raise failure
        return None
