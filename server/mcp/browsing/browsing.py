"""What is browsed, put together: what is stored here, what functions offer, and its changes."""

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
        skills: Has changes of skills told; None where there are none.
    """

    resources: ResourceHandlers
    prompts: PromptHandlers
    subscriptions: Subscriptions
    changed: Callable[[str], Awaitable[None]]
    parts: tuple[Running, ...]
    skills: SkillChanges | None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Has changes told."""
        async with AsyncExitStack() as stack:
            for part in self.parts:
                await stack.enter_async_context(part.running())
            if self.skills is not None:
                await stack.enter_async_context(self.skills.told_to(self.subscriptions))
            yield


@dataclass(frozen=True, slots=True)
class OwnBrowsing:
    """What is ours, before other servers.

    Attributes:
        resources: What functions offer and what is stored.
        prompts: Ours and those of functions.
        changes: Told of changed resources of functions.
        skills: Knows when skills change; None where there are none.
    """

    resources: OfferedResources
    prompts: OfferedPrompts
    changes: OfferedChanges
    skills: SkillChanges | None

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """Those who know when resources of ours change."""
        return (self.changes,) if self.skills is None else (self.changes, self.skills)

    def browsing(self, lists: Collection[str]) -> Browsing:
        """Puts it together without other servers; `lists` are those that change."""
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
    """Puts what functions offer beside our own.

    Args:
        offered: What functions offer.
        calls: Runs them.
        resources: Our own.
        prompts: The same.
        skills: Knows when skills change; None where there are none.
    """
    read = OfferedResources(resources, offered, calls)
    asked = OfferedPrompts(prompts, offered, calls, read)
    return OwnBrowsing(read, asked, OfferedChanges(read), skills)
