"""What is browsed, put together: what is stored here, what functions offer, and its changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from mcp.server.context import ServerRequestContext

from server.mcp.browsing.handlers import PromptHandlers, ResourceHandlers
from server.mcp.browsing.offered_calls import OfferedCalls
from server.mcp.browsing.offered_changes import OfferedChanges
from server.mcp.browsing.offered_prompts import OfferedPrompts
from server.mcp.browsing.offered_resources import OfferedResources
from server.mcp.browsing.subscriptions import Subscriptions
from tools.core.browsing.offered import Offered

__all__ = ["Browsing", "OwnBrowsing", "browse_functions"]

Context = ServerRequestContext[Any, Any]


class Running(Protocol):
    """What works in the background."""

    def running(self) -> AbstractAsyncContextManager[object]:
        """Works until the end of the block."""


@dataclass(frozen=True, slots=True)
class Browsing:
    """What answers whoever browses.

    Attributes:
        resources: Answers requests for resources.
        prompts: Answers requests for prompts, and completion.
        subscriptions: Tells of changes while it is running.
        changed: Is told the address of a function's resource that changed.
        parts: What works in the background.
    """

    resources: ResourceHandlers
    prompts: PromptHandlers
    subscriptions: Subscriptions
    changed: Callable[[str], Awaitable[None]]
    parts: tuple[Running, ...]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Has changes told."""
        async with AsyncExitStack() as stack:
            for part in self.parts:
                await stack.enter_async_context(part.running())
            yield


@dataclass(frozen=True, slots=True)
class OwnBrowsing:
    """What is ours, before other servers.

    Attributes:
        resources: What functions offer and what is stored.
        prompts: Ours and those of functions.
        changes: Told of changed resources of functions.
    """

    resources: OfferedResources
    prompts: OfferedPrompts
    changes: OfferedChanges

    def browsing(self, lists: Collection[str]) -> Browsing:
        """Puts it together without other servers; `lists` are those that change."""
        subscriptions = Subscriptions(lists, (self.changes,), lambda _ctx, _server: True)
        told = subscriptions, self.changes.changed
        return Browsing(self.resources, self.prompts, *told, (subscriptions,))


def browse_functions(
    offered: Offered, calls: OfferedCalls, *, resources: ResourceHandlers, prompts: PromptHandlers
) -> OwnBrowsing:
    """Puts what functions offer beside our own.

    Args:
        offered: What functions offer.
        calls: Runs them.
        resources: Our own.
        prompts: The same.
    """
    read = OfferedResources(resources, offered, calls)
    return OwnBrowsing(read, OfferedPrompts(prompts, offered, calls, read), OfferedChanges(read))
