"""Resources of other servers, listed after our own."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from server.mcp.asking.client_requests import ClientRequest
from server.mcp.browsing.answers import RESOURCE_NOT_FOUND, no_resource_at
from server.mcp.browsing.offered_resources import OfferedResources
from server.mcp.paging import DOCUMENTS, page, place_of
from server.mcp.resources import PAGE_SIZE
from server.upstream.browsing.directory import Directory, Shelf, address_for
from server.upstream.browsing.offers import Offers
from server.upstream.browsing.uris import is_ours, split
from server.upstream.connections.listing import Listing
from server.upstream.connections.skill_entries import roots_of
from server.upstream.upstream import Upstream
from tools.agent.skillfiles.skill import SCHEME

Context = ServerRequestContext[Any, Any]

_READ: TypeAdapter[types.ReadResourceResult | types.InputRequiredResult] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)


class GatewayResources:
    """Handles resources/list, resources/templates/list and resources/read.

    Other servers' resources are passed through with `toolcrib/server` in their `_meta`. An address
    listed by two servers belongs to the first in the settings. The other's, and any `context://`,
    `skill://` and `toolcrib://` address of a server, is listed as `toolcrib://SERVER/ADDRESS`.
    In that form every address of every server can be read, except those in skills.

    Args:
        own: Stored resources and those of functions.
        offers: The other servers.
    """

    def __init__(self, own: OfferedResources, offers: Offers) -> None:
        self._own = own
        self._offers = offers
        self._shelves: dict[str, Shelf] = {}

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Returns one page: first our own resources, then those of each server."""
        cursor = params.cursor if params else None
        own: list[types.Resource] = []
        if cursor is None or place_of(cursor)[0] == DOCUMENTS:
            stored = await self._own.list_resources(ctx, params)
            if stored.next_cursor is not None:
                return stored
            own, cursor = stored.resources, None
        await self._offers.wait_listed()
        sections = self.directory(ctx).resources()
        others, following = page("resources", sections, cursor, PAGE_SIZE - len(own))
        return types.ListResourcesResult(resources=[*own, *others], next_cursor=following)

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Returns one page: first our own templates, then those of servers."""
        cursor = params.cursor if params else None
        own: list[types.ResourceTemplate] = []
        if cursor is None:
            own = (await self._own.list_templates(ctx, params)).resource_templates
        await self._offers.wait_listed()
        sections = self.directory(ctx).templates()
        others, following = page("templates", sections, cursor, PAGE_SIZE - len(own))
        return types.ListResourceTemplatesResult(
            resource_templates=[*own, *others], next_cursor=following
        )

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Reads a resource from the store, a function or its server."""
        owners = await self.owners(ctx, params.uri)
        if not owners:
            return await self._own.read_resource(ctx, params)
        failure: MCPError | None = None
        with self._offers.relay_for(ctx, params, params.uri) as relay:
            for upstream, own in owners:
                try:
                    return await self._read(relay, upstream, params.uri, own)
                except MCPError as error:
                    if not _is_not_found(error):
                        failure = failure or error
        raise failure or no_resource_at(params.uri, ctx)

    async def owners(self, ctx: Context, uri: str) -> list[tuple[Upstream, str]]:
        """Returns servers that may know an address, likeliest first, with their own form of it."""
        server, own = split(uri)
        if server:
            named = self._offers.find_server(ctx, server)
            return [] if named is None or _is_in_skill(own, named) else [(named, own)]
        if is_ours(uri) or await self._own.find(ctx, uri) is not None:
            return []
        found = self.directory(ctx).owners(uri)
        if not found:  # its server may not be listed yet
            await self._offers.wait_listed()
            found = self.directory(ctx).owners(uri)
        return [(upstream, uri) for upstream in found if not _is_in_skill(uri, upstream)]

    async def owner_of_template(self, ctx: Context, template: str) -> tuple[Upstream, str] | None:
        """Returns the server that has a template, and its own form of it."""
        server, own = split(template)
        if await self._own.template(ctx, template) is not None:
            return None
        await self._offers.wait_listed()
        if server:
            named = self._offers.find_server(ctx, server)
            return None if named is None else (named, own)
        found = self.directory(ctx).owner_of_template(template)
        return None if found is None else (found, template)

    def directory(self, ctx: Context) -> Directory:
        """Returns the addresses that the client may see."""
        shelves = [(each, self._shelf(each.name, listed)) for each, listed in self._offers.of(ctx)]
        return Directory(shelves, self._own.addresses(ctx))

    def _shelf(self, server: str, listing: Listing) -> Shelf:
        found = self._shelves.get(server)
        if found is None or found.listing is not listing:
            found = self._shelves[server] = Shelf(listing)
        return found

    async def _read(
        self, relay: ClientRequest, upstream: Upstream, uri: str, own: str
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=own))
        result = await self._offers.ask(relay, upstream, request, _READ)
        if isinstance(result, types.InputRequiredResult):
            return result
        contents = [
            each.model_copy(
                update={"uri": uri if each.uri == own else address_for(upstream.name, each.uri)}
            )
            for each in result.contents
        ]
        return result.model_copy(update={"contents": contents})


def _is_in_skill(uri: str, upstream: Upstream) -> bool:
    """Returns whether an address may only be read as part of a skill, which may await review."""
    known = upstream.listing
    return uri.lower().startswith((SCHEME,) if known is None else roots_of(known.skills))


def _is_not_found(error: MCPError) -> bool:
    """Returns whether an error means an unknown resource, in either era (SEP-2164)."""
    data = error.error.data
    names_it = isinstance(data, dict) and "uri" in data
    return error.code == RESOURCE_NOT_FOUND or (error.code == types.INVALID_PARAMS and names_it)
