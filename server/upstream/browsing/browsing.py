"""Combines our own resources and prompts with those of other servers."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from server.mcp.asking.client_requests import ClientRequests
from server.mcp.browsing.browsing import Browsing, OwnBrowsing
from server.mcp.browsing.offered_prompts import OfferedPrompts
from server.mcp.browsing.subscriptions import Hear, Subscriptions, Unwatch
from server.mcp.paging import Section, page
from server.mcp.profiles import Profiles
from server.mcp.prompts import PROMPTS
from server.mcp.resources import PAGE_SIZE
from server.upstream.browsing.directory import meta_of
from server.upstream.browsing.offers import Offers
from server.upstream.browsing.resources import GatewayResources
from server.upstream.browsing.watches import Watched, Watches
from server.upstream.gateway import Gateway
from server.upstream.upstream import Upstream
from tools.conversion.naming import exposed_name

Context = ServerRequestContext[Any, Any]
Reference = types.PromptReference | types.ResourceTemplateReference

_GOT: TypeAdapter[types.GetPromptResult | types.InputRequiredResult] = TypeAdapter(
    types.GetPromptResult | types.InputRequiredResult
)
_COMPLETED = TypeAdapter(types.CompleteResult)


class GatewayPrompts:
    """Handles prompts/list, prompts/get and completion/complete.

    Another server's prompt is listed as `server__prompt`, with `toolcrib/server` in its `_meta`.
    Its own name works too if it is unique.

    Args:
        own: Our own prompts and those of functions.
        offers: The other servers.
        resources: Maps templates to servers.
    """

    def __init__(self, own: OfferedPrompts, offers: Offers, resources: GatewayResources) -> None:
        self._own = own
        self._offers = offers
        self._resources = resources

    async def list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Returns one page: first our own prompts, then those of each server."""
        cursor = params.cursor if params else None
        own: list[types.Prompt] = []
        if cursor is None:
            own = (await self._own.list_prompts(ctx, params)).prompts
        await self._offers.wait_listed()
        sections = [
            Section(each.name, listing.prompts, partial(_namespaced, each.name))
            for each, listing in self._offers.of(ctx)
        ]
        others, following = page("prompts", sections, cursor, PAGE_SIZE - len(own))
        return types.ListPromptsResult(prompts=[*own, *others], next_cursor=following)

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Renders a prompt for the model; another server's prompt is passed through."""
        found = await self._owner(ctx, params.name)
        if found is None:
            return await self._own.get_prompt(ctx, params)
        upstream, own = found
        asked = types.GetPromptRequestParams(name=own, arguments=params.arguments)
        with self._offers.relay_for(ctx, params, params.name) as relay:
            return await self._offers.ask(
                relay, upstream, types.GetPromptRequest(params=asked), _GOT
            )

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Completes an argument of a prompt or a variable of a template."""
        found = await self._find_reference(ctx, params.ref)
        if found is None:
            return await self._own.complete(ctx, params)
        upstream, ref = found
        asked = params.model_copy(update={"ref": ref, "meta": None})
        request = types.CompleteRequest(params=asked)
        return await self._offers.ask_plainly(ctx, upstream, request, _COMPLETED)

    async def _find_reference(
        self, ctx: Context, ref: Reference
    ) -> tuple[Upstream, Reference] | None:
        if isinstance(ref, types.PromptReference):
            prompt = await self._owner(ctx, ref.name)
            return prompt and (prompt[0], ref.model_copy(update={"name": prompt[1]}))
        template = await self._resources.owner_of_template(ctx, ref.uri)
        return template and (template[0], ref.model_copy(update={"uri": template[1]}))

    async def _owner(self, ctx: Context, name: str) -> tuple[Upstream, str] | None:
        """Returns the server of a prompt and its name there; None for our own and unknown ones."""
        if name in PROMPTS or await self._own.find(ctx, name) is not None:
            return None
        found = self._find(ctx, name)
        if found is None:  # its server may not be listed yet
            await self._offers.find(name)
            found = self._find(ctx, name)
        return found

    def _find(self, ctx: Context, name: str) -> tuple[Upstream, str] | None:
        prompts = [
            (upstream, each.name)
            for upstream, listing in self._offers.of(ctx)
            for each in listing.prompts
        ]
        for upstream, own in prompts:
            if exposed_name(upstream.name, own) == name:
                return upstream, own
        bare = [each for each in prompts if each[1] == name]
        return bare[0] if len(bare) == 1 else None


def _namespaced(server: str, given: types.Prompt) -> types.Prompt:
    name = exposed_name(server, given.name)
    return given.model_copy(update={"name": name, "meta": meta_of(server, given.meta)})


class GatewayWatcher:
    """Watches resources at the servers that have them; see Watcher.

    Args:
        offers: The other servers, as each caller may see them.
        resources: Maps addresses to servers.
        watches: Watches resources while running.
    """

    def __init__(self, offers: Offers, resources: GatewayResources, watches: Watches) -> None:
        self._offers = offers
        self._resources = resources
        self._watches = watches

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Registers a callback for possible changes of another server's resource."""
        session_id = self._offers.conversation(ctx)
        failure: MCPError | None = None
        for upstream, own in await self._resources.owners(ctx, uri):
            resource = Watched(upstream, session_id, own)
            try:
                await self._watches.add(resource, (who, uri), hear)
            except MCPError as error:
                failure = failure or error
            else:
                return partial(self._watches.remove, resource, (who, uri))
        if failure is not None:
            raise failure
        return None


def browse(  # noqa: PLR0913  # the composition root hands over every part by name
    gateway: Gateway,
    own: OwnBrowsing,
    *,
    requests: ClientRequests,
    profiles: Profiles,
    lists: Collection[str],
    changing: Collection[str],
) -> Browsing:
    """Adds what other servers offer to our own.

    Args:
        gateway: The other servers.
        own: Our own.
        requests: Forwards the servers' requests to the client.
        profiles: The profiles that restrict clients.
        lists: The lists that change with the other servers: of tools, prompts and resources.
        changing: The lists that also change by themselves.
    """

    def admits(ctx: ServerRequestContext[Any, Any], server: str) -> bool:
        profile = profiles.of(ctx)
        return profile is None or profile.tool_set.admits_server(server)

    offers = Offers(gateway, requests, admits)
    resources = GatewayResources(own.resources, offers)
    watches = Watches()
    watcher = GatewayWatcher(offers, resources, watches)
    subscriptions = Subscriptions({*lists, *changing}, (*own.watchers, watcher), admits)
    gateway.on_change(
        lambda server, kinds: subscriptions.changed(server, kinds.intersection(lists))
    )
    prompts = GatewayPrompts(own.prompts, offers, resources)
    told = subscriptions, own.changes.changed
    return Browsing(resources, prompts, *told, (watches, subscriptions), own.skills)
