"""Skills as resources, `skill://NAME/SKILL.md` and other files, which can change at any time."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

import anyio
import anyio.to_thread
import mcp_types as types

from server.mcp.browsing.answers import Section, no_resource_at
from server.mcp.browsing.provider import Context, Provider, add_watcher
from server.mcp.browsing.skill_view import SkillView, main_of, media_type
from server.mcp.browsing.subscriptions import Hear, Subscriptions, Unwatch
from server.mcp.resources import read_in_thread
from tools.agent.skillfiles.skill import MAIN, SCHEME, Skill
from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    PermissionDeniedError,
    ToolError,
)

WATCH_SECONDS = 2.0
"""Poll interval while there are subscribers."""

REST = 100
"""Minimum ratio of the wait between polls to the duration of a poll."""

TEMPLATE = types.ResourceTemplate(
    uri_template="skill://{name}/{+file}",
    name="skill",
    title="File of a skill",
    description="SKILL.md has the instructions of a skill, and refers to its other files.",
)
UNKNOWN_TYPE = "application/octet-stream"


class _Watched(NamedTuple):
    ctx: Context
    before: Skill | None
    hear: Hear


class SkillProvider(Provider):
    """The files of skills as resources; only each SKILL.md is listed."""

    def __init__(self, view: SkillView) -> None:
        self._view = view
        self._watched: defaultdict[str, dict[object, _Watched]] = defaultdict(dict)

    async def resources(self, ctx: Context) -> Sequence[Section[types.Resource]]:
        """Returns the SKILL.md of each skill."""
        skills = await read_in_thread("resources/list", partial(self._view.visible_to, ctx))
        return [Section.of("skills", [*map(main_of, skills)])]

    async def templates(self, ctx: Context) -> Sequence[Section[types.ResourceTemplate]]:  # noqa: ARG002  # the same for all
        """Returns the address of a skill's files."""
        return [Section.of("skills", [TEMPLATE])]

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | None:
        """Reads a file of a skill: as text if it is UTF-8, otherwise as a blob."""
        uri = params.uri
        if not uri.startswith(SCHEME):
            return None
        try:
            path, data = await read_in_thread("resources/read", partial(self._read, ctx, uri))
        except NotFoundError as error:
            raise no_resource_at(uri, ctx) from error
        kind = media_type(path)
        content: types.TextResourceContents | types.BlobResourceContents
        try:
            content = types.TextResourceContents(
                uri=uri, mime_type=kind or "text/plain", text=data.decode()
            )
        except UnicodeDecodeError:
            content = types.BlobResourceContents(
                uri=uri, mime_type=kind or UNKNOWN_TYPE, blob=base64.b64encode(data).decode()
            )
        return types.ReadResourceResult(contents=[content])

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Registers a callback for changes of a SKILL.md; see Watcher."""
        if not (uri.startswith(SCHEME) and uri.endswith(f"/{MAIN}")):
            return None
        before = await anyio.to_thread.run_sync(self._at, ctx, uri)
        if before is None:
            return None
        return add_watcher(self._watched, uri, who, _Watched(ctx, before, hear))

    @asynccontextmanager
    async def running(self, subscriptions: Subscriptions) -> AsyncIterator[None]:
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

    def _read(self, ctx: Context, uri: str) -> tuple[str, bytes]:
        skill, path = self._view.at(ctx, uri)
        try:
            return path, skill.data(path)
        except (InvalidArgumentsError, OutsideSandboxError, PermissionDeniedError) as error:
            raise NotFoundError(error.message) from error
