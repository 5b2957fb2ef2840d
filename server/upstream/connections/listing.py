"""Lists what another server offers, page by page and within limits."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Literal, TypeVar

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict

from server.mcp.browsing.skill_wire import EXTENSION
from server.upstream.connections.connection import Connection
from server.upstream.connections.skill_entries import (
    SkillEntry,
    entries_in,
    list_skills,
    roots_of,
)
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

Kind = Literal["tools", "resources", "prompts"]
KINDS: frozenset[Kind] = frozenset(("tools", "resources", "prompts"))

PageT = TypeVar("PageT", bound=types.PaginatedResult)
ItemT = TypeVar(
    "ItemT", types.Tool, types.Resource, types.ResourceTemplate, types.Prompt, SkillEntry
)

_logger = logging.getLogger("toolcrib")


class Listing(BaseModel):
    """What a server offers, and how it describes itself.

    Attributes:
        tools: Its tools.
        resources: Its resources.
        templates: Its templates of resources.
        prompts: Its prompts.
        skills: Its skills.
        instructions: Its instructions for models.
        server_info: Its name and version, as it reports them.
    """

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
    """Lists everything that a server claims to offer.

    Raises:
        TimeoutError: If it takes too long.
        ValidationError: If an answer is invalid.
    """
    has = connection.client.server_capabilities
    session = connection.session
    pages = _Pages(connection)
    with anyio.fail_after(SECONDS):
        tools = await pages.all_of(session.list_tools, _tools, asks=bool(has.tools))
        resources = await pages.all_of(session.list_resources, _resources, asks=bool(has.resources))
        # In the older era a server cannot declare extensions.
        may_have_skills = EXTENSION in (has.extensions or {}) or (
            not connection.is_modern and any(each.uri.startswith(SCHEME) for each in resources)
        )
        skills = await pages.all_of(
            partial(list_skills, session), entries_in, asks=may_have_skills, most=MOST_SKILLS
        )
        templates = await pages.all_of(
            session.list_resource_templates, _templates, asks=bool(has.resources)
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
            prompts=await pages.all_of(session.list_prompts, _prompts, asks=bool(has.prompts)),
            instructions=(connection.client.instructions or "")[:LONGEST_DESCRIPTION],
            server_info=connection.client.server_info,
        )


class _Pages:
    """Reads all pages of a server's lists."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._most = connection.received + MOST_BYTES

    async def all_of(
        self,
        fetch: Callable[..., Awaitable[PageT]],
        items_of: Callable[[PageT], Iterable[ItemT]],
        *,
        asks: bool,
        most: int | None = None,
    ) -> tuple[ItemT, ...]:
        """Returns the valid items of a list, without duplicates."""
        most = MOST_ITEMS if most is None else most
        found: dict[str, ItemT] = {}
        cursor: str | None = None
        seen: set[str] = set()
        while asks:
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            page = await self._page(fetch, params)
            if page is None:
                break
            for item in items_of(page):
                if len(name := _name(item)) <= _longest(item):
                    found.setdefault(name, _truncate(item))
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen or len(seen) >= MOST_PAGES:
                self._warn("it has no end")
                break
            if len(found) > most or self._connection.received > self._most:
                self._warn("it is too long")
                break
            seen.add(cursor)
        return tuple(found.values())[:most]

    async def _page(
        self,
        fetch: Callable[..., Awaitable[PageT]],
        params: types.PaginatedRequestParams | None,
    ) -> PageT | None:
        try:
            return await fetch(params=params)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:
                raise
            return None  # a server may have resources but no templates

    def _warn(self, reason: str) -> None:
        _logger.warning("The server %r: a list was cut: %s.", self._connection.server, reason)


def _tools(page: types.ListToolsResult) -> Iterable[types.Tool]:
    return page.tools


def _resources(page: types.ListResourcesResult) -> Iterable[types.Resource]:
    return page.resources


def _templates(page: types.ListResourceTemplatesResult) -> Iterable[types.ResourceTemplate]:
    return page.resource_templates


def _prompts(page: types.ListPromptsResult) -> Iterable[types.Prompt]:
    return page.prompts


def _name(item: ItemT) -> str:
    if isinstance(item, types.Resource | SkillEntry):
        return str(item.uri)
    return item.uri_template if isinstance(item, types.ResourceTemplate) else item.name


def _longest(item: ItemT) -> int:
    is_address = isinstance(item, types.Resource | types.ResourceTemplate | SkillEntry)
    return LONGEST_URI if is_address else LONGEST_NAME


def _truncate(item: ItemT) -> ItemT:
    if isinstance(item, SkillEntry):
        return item
    if item.description is None or len(item.description) <= LONGEST_DESCRIPTION:
        return item
    return item.model_copy(update={"description": item.description[:LONGEST_DESCRIPTION]})
