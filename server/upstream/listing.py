"""Listings: what another server offers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client
from pydantic import BaseModel, ConfigDict

__all__ = ["Listing", "list_all"]

MOST_PAGES = 1_000

PageT = TypeVar("PageT", bound=types.PaginatedResult)

_logger = logging.getLogger("toolcrib")


class Listing(BaseModel):
    """What a server offers, and how it introduces itself.

    Attributes:
        tools: Its tools.
        resources: Its resources.
        templates: Its templates of resources.
        prompts: Its prompts.
        instructions: What it wants models to know.
        server_info: Who it says it is.
    """

    model_config = ConfigDict(frozen=True)

    tools: tuple[types.Tool, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    instructions: str = ""
    server_info: types.Implementation | None = None


async def list_all(client: Client) -> Listing:
    """Asks a server for everything that it says it has."""
    has = client.server_capabilities
    tools = await _pages(client.list_tools) if has.tools else []
    resources = await _pages(client.list_resources) if has.resources else []
    templates = await _pages(client.list_resource_templates) if has.resources else []
    prompts = await _pages(client.list_prompts) if has.prompts else []
    return Listing(
        tools=tuple(each for page in tools for each in page.tools),
        resources=tuple(each for page in resources for each in page.resources),
        templates=tuple(each for page in templates for each in page.resource_templates),
        prompts=tuple(each for page in prompts for each in page.prompts),
        instructions=client.instructions or "",
        server_info=client.server_info,
    )


async def _pages(fetch: Callable[..., Awaitable[PageT]]) -> list[PageT]:
    pages: list[PageT] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        arguments: dict[str, Any] = {"cache_mode": "refresh"}
        pages.append(await fetch(cursor=cursor, **arguments))
        cursor = pages[-1].next_cursor
        if cursor is None:
            break
    return pages
