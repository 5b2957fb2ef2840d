"""Detects changes of skills, which are files that can change at any time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext

from server.mcp.browsing.skill_view import SkillView
from server.mcp.browsing.subscriptions import Hear, Subscriptions, Unwatch
from tools.agent.skillfiles.skill import MAIN, SCHEME, Skill
from tools.core.errors import ToolError

WATCH_SECONDS = 2.0
"""Poll interval while there are subscribers."""

REST = 100
"""Minimum ratio of the wait between polls to the duration of a poll."""

Context = ServerRequestContext[Any, Any]


class _Watched(NamedTuple):
    ctx: Context
    before: Skill | None
    hear: Hear


class SkillChanges:
    """Notifies subscribers when skills are added, removed or changed.

    Args:
        view: The skills that a client may see.
    """

    def __init__(self, view: SkillView) -> None:
        self._view = view
        self._watched: defaultdict[str, dict[object, _Watched]] = defaultdict(dict)

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Registers a callback for changes of a SKILL.md; see Watcher."""
        if not (uri.startswith(SCHEME) and uri.endswith(f"/{MAIN}")):
            return None
        before = await anyio.to_thread.run_sync(self._at, ctx, uri)
        if before is None:
            return None
        self._watched[uri][who] = _Watched(ctx, before, hear)
        return partial(self._unwatch, uri, who)

    @asynccontextmanager
    async def notify(self, subscriptions: Subscriptions) -> AsyncIterator[None]:
        """Polls for changes in the background while there are subscribers."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._look, subscriptions)
            yield
            group.cancel_scope.cancel()

    async def _look(self, subscriptions: Subscriptions) -> None:
        told, wait = 1, WATCH_SECONDS  # the first poll counts as one change
        while True:
            await anyio.sleep(wait)
            if not (subscriptions.subscriber_count or self._watched):
                continue
            begun = anyio.current_time()
            changes = await anyio.to_thread.run_sync(self._view.changes)
            wait = max(WATCH_SECONDS, REST * (anyio.current_time() - begun))
            if changes > told:
                told = changes
                subscriptions.changed("", {"resources"})
                await self._tell()

    async def _tell(self) -> None:
        """Notifies watchers of changed skills."""
        for uri, watching in tuple(self._watched.items()):
            for who, each in tuple(watching.items()):
                now = await anyio.to_thread.run_sync(self._at, each.ctx, uri)
                if now != each.before and who in watching:
                    watching[who] = each._replace(before=now)
                    await each.hear()

    def _at(self, ctx: Context, uri: str) -> Skill | None:
        """Returns the skill whose SKILL.md has an address."""
        try:
            skill, path = self._view.at(ctx, uri)
        except ToolError:
            return None
        return skill if path == MAIN else None

    def _unwatch(self, uri: str, who: object) -> None:
        self._watched[uri].pop(who, None)
        if not self._watched[uri]:
            del self._watched[uri]
