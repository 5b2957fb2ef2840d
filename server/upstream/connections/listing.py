"""Lists what another server offers: when it changes, page by page, and cached."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from typing import Literal, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, ValidationError

from server.mcp.browsing.skill_view import EXTENSION
from server.settings.gateway import ServerSettings
from server.upstream.connections.connection import Connection
from server.upstream.skill_entries import SkillEntry, entries_in, list_skills, roots_of
from storage.catalog.catalog import Listings
from storage.errors import StorageError
from tools.agent.skillfiles.skill import SCHEME

MOST_PAGES = 1_000
MOST_ITEMS = 30_000
"""Maximum number of a server's tools, resources, templates or prompts."""
MOST_SKILLS = 1_000
MOST_BYTES = 128 * 2**20
"""Maximum bytes of all pages."""
LONGEST_NAME = 256
"""Maximum length of a name; items with longer ones are dropped. Addresses may be longer."""
LONGEST_URI = 8_192
LONGEST_DESCRIPTION = 20_000
"""Maximum length of a description."""
SECONDS = 120.0
"""Time for all pages."""

SETTLE_SECONDS = 0.2
"""Time to wait for further changes after the first; they often come in series."""

SHARE = 5
"""Minimum ratio of the wait before the next listing to the duration of the last."""

Kind = Literal["tools", "resources", "prompts"]
KINDS: frozenset[Kind] = frozenset(("tools", "resources", "prompts"))

_LISTS = (
    types.ToolListChangedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)

PageT = TypeVar("PageT", bound=types.PaginatedResult)
ItemT = TypeVar(
    "ItemT", types.Tool, types.Resource, types.ResourceTemplate, types.Prompt, SkillEntry
)

_logger = logging.getLogger("toolcrib")


class Listing(BaseModel):
    """What a server offers, and how it describes itself."""

    model_config = ConfigDict(frozen=True)

    tools: tuple[types.Tool, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    skills: tuple[SkillEntry, ...] = ()
    instructions: str = ""
    server_info: types.Implementation | None = None

    def differs_from(self, other: Listing | None) -> frozenset[Kind]:
        """Returns the kinds that differ from another listing; all if there is none."""
        if other is None:
            return KINDS
        pairs: Iterable[tuple[Kind, object, object]] = (
            ("tools", self.tools, other.tools),
            ("resources", self.resources, other.resources),
            ("resources", self.templates, other.templates),
            ("resources", self.skills, other.skills),
            ("prompts", self.prompts, other.prompts),
        )
        return frozenset(kind for kind, mine, theirs in pairs if mine != theirs)


async def list_all(connection: Connection) -> Listing:
    """Lists everything that a server claims to offer."""
    has = connection.client.server_capabilities
    session = connection.session
    pages = _Pages(connection)
    with anyio.fail_after(SECONDS):
        tools = await pages.all_of(session.list_tools, lambda page: page.tools, asks=has.tools)
        resources = await pages.all_of(
            session.list_resources, lambda page: page.resources, asks=has.resources
        )
        # In the older era a server cannot declare extensions.
        may_have_skills = EXTENSION in (has.extensions or {}) or (
            not connection.is_modern and any(each.uri.startswith(SCHEME) for each in resources)
        )
        skills = await pages.all_of(
            partial(list_skills, session), entries_in, asks=may_have_skills, most=MOST_SKILLS
        )
        templates = await pages.all_of(
            session.list_resource_templates,
            lambda page: page.resource_templates,
            asks=has.resources,
        )
        prompts = await pages.all_of(
            session.list_prompts, lambda page: page.prompts, asks=has.prompts
        )
        in_skills = roots_of(skills)  # only read as skills, verified by their digests
        return Listing(
            tools=tools,
            resources=tuple(
                each for each in resources if not each.uri.lower().startswith(in_skills)
            ),
            skills=skills,
            templates=tuple(
                each for each in templates if not each.uri_template.lower().startswith(in_skills)
            ),
            prompts=prompts,
            instructions=(connection.client.instructions or "")[:LONGEST_DESCRIPTION],
            server_info=connection.client.server_info,
        )


class _Pages:
    """Reads all pages of a server's lists."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._most = connection.link.received + MOST_BYTES

    async def all_of(
        self,
        fetch: Callable[..., Awaitable[PageT]],
        items_of: Callable[[PageT], Iterable[ItemT]],
        *,
        asks: object,
        most: int | None = None,
    ) -> tuple[ItemT, ...]:
        """Returns the valid items of a list, without duplicates; none unless `asks` is true."""
        most = MOST_ITEMS if most is None else most
        found: dict[str, ItemT] = {}
        cursor: str | None = None
        seen: set[str] = set()
        while asks:
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            try:
                page = await fetch(params=params)
            except MCPError as error:
                if error.code != types.METHOD_NOT_FOUND:
                    raise
                break  # a server may have resources but no templates
            for item in items_of(page):
                name, longest = _name_and_limit(item)
                if len(name) <= longest:
                    found.setdefault(name, _truncate(item))
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen or len(seen) >= MOST_PAGES:
                self._warn("it has no end")
                break
            if len(found) > most or self._connection.link.received > self._most:
                self._warn("it is too long")
                break
            seen.add(cursor)
        return tuple(found.values())[:most]

    def _warn(self, reason: str) -> None:
        _logger.warning("The server %r: a list was cut: %s.", self._connection.server, reason)


def _name_and_limit(item: ItemT) -> tuple[str, int]:
    """Returns the name or address of an item, and the maximum length of such a name."""
    if isinstance(item, types.Resource | SkillEntry):
        return item.uri, LONGEST_URI
    if isinstance(item, types.ResourceTemplate):
        return item.uri_template, LONGEST_URI
    return item.name, LONGEST_NAME


def _truncate(item: ItemT) -> ItemT:
    if isinstance(item, SkillEntry):
        return item
    if item.description is None or len(item.description) <= LONGEST_DESCRIPTION:
        return item
    return item.model_copy(update={"description": item.description[:LONGEST_DESCRIPTION]})


class Cached:
    """Stores listings in the record, off the event loop; failures of the record are only logged."""

    def __init__(self, stored: Listings) -> None:
        self._stored = stored

    async def get(self, server: str, settings: ServerSettings) -> Listing | None:
        """Returns a server's last listing."""
        return await anyio.to_thread.run_sync(self._get, server, fingerprint(settings))

    async def put(self, server: str, settings: ServerSettings, listing: Listing) -> None:
        """Stores a server's listing."""
        await anyio.to_thread.run_sync(self._put, server, fingerprint(settings), listing)

    def _get(self, server: str, key: str) -> Listing | None:
        try:
            kept = self._stored.get(server, key)
            return None if kept is None else Listing.model_validate(kept.offered)
        except (StorageError, ValidationError) as error:
            _logger.warning("The last listing of %r cannot be read: %s", server, error)
            return None

    def _put(self, server: str, key: str, listing: Listing) -> None:
        try:
            offered = listing.model_dump(mode="json", by_alias=True, exclude_unset=True)
            self._stored.put(server, key, offered)
        except StorageError as error:
            _logger.warning("The listing of %r cannot be stored: %s", server, error)


def fingerprint(settings: ServerSettings) -> str:
    """Returns a hash that identifies a server by its settings, without secrets."""
    told = [
        settings.command,
        settings.args,
        str(settings.cwd or ""),
        settings.url,
        sorted(settings.env),
        sorted(settings.headers),
    ]
    return sha256(json.dumps(told).encode()).hexdigest()


class Changes:
    """Decides when to list what a connection's server offers: first at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._happened = anyio.Event()
        self._asked_at = 0.0

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """Receives notifications during the block."""
        self._connection.observer = self._hear
        try:
            async with anyio.create_task_group() as group:
                if self._connection.is_modern:
                    group.start_soon(self._listen)
                yield
                group.cancel_scope.cancel()
        finally:
            self._connection.observer = None

    async def next(self, patience: float = math.inf) -> bool:
        """Waits until the listing is due, at most so many seconds.

        Returns False once the connection has closed.
        """
        if not self._asked_at:
            self._asked_at = time.monotonic()
            return self._connection.is_open
        took = time.monotonic() - self._asked_at
        with anyio.move_on_after(patience):
            await self._happened.wait()
        with anyio.move_on_after(SETTLE_SECONDS + SHARE * took):
            await self._connection.closed.wait()
        self._happened = anyio.Event()
        self._asked_at = time.monotonic()
        return self._connection.is_open

    def _hear(self, notification: types.ServerNotification | None) -> None:
        if notification is None or isinstance(notification, _LISTS):
            self._happened.set()

    async def _listen(self) -> None:
        """Subscribes to changes at a modern server while the connection is open.

        Its notifications also reach the connection's listeners. While the stream is lost, any
        notification may be missed.
        """
        has = self._connection.client.server_capabilities
        while self._connection.is_open:
            try:
                async with self._connection.client.listen(
                    tools_list_changed=has.tools is not None,
                    prompts_list_changed=has.prompts is not None,
                    resources_list_changed=has.resources is not None,
                ) as subscription:
                    async for _ in subscription:
                        self._happened.set()
            except SubscriptionLost:
                await anyio.sleep(1)
                self._happened.set()
            except (MCPError, TimeoutError):  # not supported, or it has ended
                return
            else:
                return
