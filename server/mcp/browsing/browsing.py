"""Combines stored resources, functions' offers and notifications of changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mcp.server.context import ServerRequestContext

from server.mcp.browsing.handlers import PromptHandlers, ResourceHandlers
from server.mcp.browsing.offered_calls import OfferedCalls
from server.mcp.browsing.offered_prompts import OfferedPrompts
from server.mcp.browsing.offered_resources import OfferedResources
from server.mcp.browsing.subscriptions import Hear, Subscriptions, Unwatch, Watcher
from tools.core.browsing.offered import Offered

if TYPE_CHECKING:  # a server of functions alone has no skills
    from server.mcp.browsing.skill_changes import SkillChanges


Context = ServerRequestContext[Any, Any]


class OfferedChanges:
    """Notifies watchers of functions' resources.

    Args:
        resources: The functions' addresses and who may see them.
    """

    def __init__(self, resources: OfferedResources) -> None:
        self._resources = resources
        self._watched: defaultdict[str, dict[object, Hear]] = defaultdict(dict)

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Registers a callback for changes of a resource; see Watcher."""
        if await self._resources.find(ctx, uri) is None:
            return None
        self._watched[uri][who] = hear
        return partial(self._unwatch, uri, who)

    async def changed(self, uri: str) -> None:
        """Notifies the watchers of an address."""
        for hear in tuple(self._watched.get(uri, {}).values()):
            await hear()

    def _unwatch(self, uri: str, who: object) -> None:
        self._watched[uri].pop(who, None)
        if not self._watched[uri]:
            del self._watched[uri]


class Running(Protocol):
    """A background task."""

    def running(self) -> AbstractAsyncContextManager[object]:
        """Runs until the end of the block."""


@dataclass(frozen=True, slots=True)
class Browsing:
    """The handlers of browsing requests.

    Attributes:
        resources: Handles requests for resources.
        prompts: Handles requests for prompts and completion.
        subscriptions: Sends notifications while running.
        changed: Takes the address of a function's resource that changed.
        parts: The background tasks.
        skills: Reports changes of skills; None without skills.
    """

    resources: ResourceHandlers
    prompts: PromptHandlers
    subscriptions: Subscriptions
    changed: Callable[[str], Awaitable[None]]
    parts: tuple[Running, ...]
    skills: SkillChanges | None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sends notifications of changes."""
        async with AsyncExitStack() as stack:
            for part in self.parts:
                await stack.enter_async_context(part.running())
            if self.skills is not None:
                await stack.enter_async_context(self.skills.notify(self.subscriptions))
            yield


@dataclass(frozen=True, slots=True)
class OwnBrowsing:
    """Our own resources and prompts, without other servers.

    Attributes:
        resources: Those of functions, and stored ones.
        prompts: Our own, and those of functions.
        changes: Receives changes of functions' resources.
        skills: Detects changes of skills; None without skills.
    """

    resources: OfferedResources
    prompts: OfferedPrompts
    changes: OfferedChanges
    skills: SkillChanges | None

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """The sources of changes of our own resources."""
        return (self.changes,) if self.skills is None else (self.changes, self.skills)

    def browsing(self, lists: Collection[str]) -> Browsing:
        """Builds handlers without other servers; `lists` are the lists that change."""
        subscriptions = Subscriptions(lists, self.watchers, lambda _ctx, _server: True)
        told = subscriptions, self.changes.changed
        return Browsing(self.resources, self.prompts, *told, (subscriptions,), self.skills)


def browse_functions(
    offered: Offered,
    calls: OfferedCalls,
    *,
    resources: ResourceHandlers,
    prompts: PromptHandlers,
    skills: SkillChanges | None = None,
) -> OwnBrowsing:
    """Combines functions' offers with our own.

    Args:
        offered: What functions offer.
        calls: Runs them.
        resources: Our own resources.
        prompts: Our own prompts.
        skills: Detects changes of skills; None without skills.
    """
    read = OfferedResources(resources, offered, calls)
    asked = OfferedPrompts(prompts, offered, calls, read)
    return OwnBrowsing(read, asked, OfferedChanges(read), skills)
