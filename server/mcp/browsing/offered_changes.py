"""Changes of resources that functions offer: their functions tell of them."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

from mcp.server.context import ServerRequestContext

from server.mcp.browsing.offered_resources import OfferedResources
from server.mcp.browsing.subscriptions import Hear, Unwatch

Context = ServerRequestContext[Any, Any]


class OfferedChanges:
    """Tells those who watch a resource of a function that it changed.

    Args:
        resources: Tells which addresses functions have, for whom.
    """

    def __init__(self, resources: OfferedResources) -> None:
        self._resources = resources
        self._watched: defaultdict[str, dict[object, Hear]] = defaultdict(dict)

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Has somebody told when a resource changes; see Watcher."""
        if await self._resources.find(ctx, uri) is None:
            return None
        self._watched[uri][who] = hear
        return partial(self._unwatch, uri, who)

    async def changed(self, uri: str) -> None:
        """Tells those who watch this very address."""
        for hear in tuple(self._watched.get(uri, {}).values()):
            await hear()

    def _unwatch(self, uri: str, who: object) -> None:
        self._watched[uri].pop(who, None)
        if not self._watched[uri]:
            del self._watched[uri]
