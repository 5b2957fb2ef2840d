"""Resources and prompts: their providers, and the handlers that ask one provider after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.answers import Section, completion_of, no_resource_at, page
from server.mcp.browsing.subscriptions import Hear, Subscriptions, Unwatch
from tools.core.unicode_safety import encodable

MOST_NAMES = 20
"""Prompts that an error names."""

WatcherT = TypeVar("WatcherT")

Context = ServerRequestContext[Any, Any]


class Provider:
    """Resources and prompts of one origin.

    An answer of None means that the provider does not know a resource or prompt, so that the next
    one is asked.
    """

    async def resources(self, ctx: Context) -> Sequence[Section[types.Resource]]:  # noqa: ARG002  # it has none
        """Returns the resources for a client, listed in this order."""
        return ()

    async def templates(self, ctx: Context) -> Sequence[Section[types.ResourceTemplate]]:  # noqa: ARG002  # it has none
        """Returns the templates of resources."""
        return ()

    async def prompts(self, ctx: Context) -> Sequence[Section[types.Prompt]]:  # noqa: ARG002  # it has none
        """Returns the prompts."""
        return ()

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult | None:
        """Reads a resource."""

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult | None:
        """Renders a prompt for the model."""

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult | None:
        """Completes an argument of a prompt or a variable of a template."""

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Registers a callback for changes of a resource; see Watcher."""

    @asynccontextmanager
    async def running(self, subscriptions: Subscriptions) -> AsyncIterator[None]:  # noqa: ARG002  # it notices nothing
        """Notices changes in the background."""
        yield


def add_watcher(
    watched: defaultdict[str, dict[object, WatcherT]], uri: str, who: object, watcher: WatcherT
) -> Unwatch:
    """Adds a watcher of an address; returns a function that removes it."""
    watched[uri][who] = watcher

    def unwatch() -> None:
        watched[uri].pop(who, None)
        if not watched[uri]:
            del watched[uri]

    return unwatch


class Browsing:
    """Handles requests for resources and prompts.

    Providers are listed and asked in their order; the first that knows something answers.
    """

    def __init__(
        self,
        providers: list[Provider],
        lists: Collection[str] = (),  # those that change: of tools, prompts and resources
        admits_server: Callable[[Context, str], bool] = lambda _ctx, _server: True,
    ) -> None:
        self.providers = providers  # may be extended while running
        self.subscriptions = Subscriptions(lists, providers, admits_server)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sends notifications of changes."""
        async with AsyncExitStack() as stack:
            for each in self.providers:
                await stack.enter_async_context(each.running(self.subscriptions))
            await stack.enter_async_context(self.subscriptions.running())
            yield

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answers resources/list."""
        loads = [partial(each.resources, ctx) for each in self.providers]
        listed, following = await page("resources", loads, params)
        return types.ListResourcesResult(resources=listed, next_cursor=following)

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answers resources/templates/list."""
        loads = [partial(each.templates, ctx) for each in self.providers]
        listed, following = await page("templates", loads, params)
        return types.ListResourceTemplatesResult(resource_templates=listed, next_cursor=following)

    async def list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Answers prompts/list."""
        loads = [partial(each.prompts, ctx) for each in self.providers]
        listed, following = await page("prompts", loads, params)
        return types.ListPromptsResult(prompts=listed, next_cursor=following)

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Answers resources/read."""
        for each in self.providers:
            if (answer := await each.read_resource(ctx, params)) is not None:
                return answer
        raise no_resource_at(params.uri, ctx)

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Answers prompts/get."""
        for each in self.providers:
            if (answer := await each.get_prompt(ctx, params)) is not None:
                return answer
        known = [each.name for each in (await self.list_prompts(ctx, None)).prompts[:MOST_NAMES]]
        there = f"; there is {', '.join(known)}" if known else ""
        text = encodable(f"No prompt is called {params.name[:100]!r}{there}.")
        raise MCPError(types.INVALID_PARAMS, text)

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answers completion/complete."""
        for each in self.providers:
            if (answer := await each.complete(ctx, params)) is not None:
                return answer
        return completion_of([])
