"""Prompts of functions, listed after our own, and completion of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.answers import completion_of
from server.mcp.browsing.handlers import PromptHandlers
from server.mcp.browsing.offered_calls import OfferedCalls
from server.mcp.browsing.offered_resources import OfferedResources
from server.mcp.wire import content_block
from tools.core.browsing.offered import Offered
from tools.core.browsing.prompt import Message, PromptSpec
from tools.core.browsing.resource import ResourceSpec
from tools.core.context import RequestContext
from tools.core.errors import NotFoundError
from tools.core.invisible import encodable

Context = ServerRequestContext[Any, Any]
Reference = types.PromptReference | types.ResourceTemplateReference


class OfferedPrompts:
    """Handles prompts/list, prompts/get and completion/complete.

    Args:
        own: Our own prompts.
        offered: What functions offer.
        calls: Runs them.
        resources: Maps templates to functions.
    """

    def __init__(
        self,
        own: PromptHandlers,
        offered: Offered,
        calls: OfferedCalls,
        resources: OfferedResources,
    ) -> None:
        self._own = own
        self._offered = offered
        self._calls = calls
        self._resources = resources

    async def list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Returns all prompts on one page."""
        own = await self._own.list_prompts(ctx, params)
        await self._calls.ready()
        prompts = self._offered.prompts.values()
        listed = [listed_prompt(each) for each in prompts if self._calls.admits(ctx, each)]
        return own.model_copy(update={"prompts": [*own.prompts, *listed]})

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Renders a prompt for the model."""
        spec = await self.find(ctx, params.name)
        if spec is None:
            return await self._own.get_prompt(ctx, params)
        arguments = params.arguments or {}

        async def render(context: RequestContext) -> Sequence[Message]:
            return await spec.render(spec.validate(arguments), context)

        try:
            messages = await self._calls.run(ctx, params, spec, render)
        except NotFoundError as error:
            raise MCPError(types.INVALID_PARAMS, encodable(error.message)) from error
        if isinstance(messages, types.InputRequiredResult):
            return messages
        return types.GetPromptResult(
            description=spec.description or None,
            messages=[
                types.PromptMessage(role=each.role, content=content_block(each.content))
                for each in messages
            ],
        )

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Completes an argument of a prompt or a variable of a template."""
        spec = await self._find_reference(ctx, params.ref)
        if spec is None:
            return await self._own.complete(ctx, params)
        argument = params.argument
        given = (params.context and params.context.arguments) or {}

        async def complete(context: RequestContext) -> list[str]:
            return await spec.complete(argument.name, argument.value, given, context)

        try:
            return completion_of(await self._calls.run_plainly(ctx, spec, complete))
        except NotFoundError as error:
            raise MCPError(types.INVALID_PARAMS, encodable(error.message)) from error

    async def find(self, ctx: Context, name: str) -> PromptSpec | None:
        """Returns the prompt of that name, if the client may see it."""
        await self._calls.ready()
        found = self._offered.prompts.get(name)
        return found if found is not None and self._calls.admits(ctx, found) else None

    async def _find_reference(
        self, ctx: Context, ref: Reference
    ) -> PromptSpec | ResourceSpec | None:
        if isinstance(ref, types.PromptReference):
            return await self.find(ctx, ref.name)
        return await self._resources.template(ctx, ref.uri)


def listed_prompt(spec: PromptSpec) -> types.Prompt:
    """Converts a prompt for the list."""
    return types.Prompt(
        name=spec.name,
        title=spec.title,
        description=spec.description or None,
        arguments=[
            types.PromptArgument(
                name=each.name, description=each.description or None, required=each.required
            )
            for each in spec.arguments
        ],
    )
