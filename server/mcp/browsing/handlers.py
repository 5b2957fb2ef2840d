"""Protocols of the handlers of resources and prompts, and handlers without content."""

from __future__ import annotations

from typing import Any, Protocol

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.answers import completion_of, no_resource_at
from tools.core.invisible import encodable

Context = ServerRequestContext[Any, Any]


class ResourceHandlers(Protocol):
    """Answers requests for resources."""

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answers resources/list."""

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answers resources/templates/list."""

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Answers resources/read."""


class PromptHandlers(Protocol):
    """Answers requests for prompts."""

    async def list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Answers prompts/list."""

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Answers prompts/get."""

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answers completion/complete."""


class Nothing:
    """Handlers without any resources or prompts of their own."""

    async def list_resources(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Returns an empty list."""
        return types.ListResourcesResult(resources=[])

    async def list_templates(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Returns an empty list."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Raises the error for an unknown resource."""
        raise no_resource_at(params.uri, ctx)

    async def list_prompts(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Returns an empty list."""
        return types.ListPromptsResult(prompts=[])

    async def get_prompt(
        self, _ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Raises the error for an unknown prompt."""
        text = encodable(f"No prompt is called {params.name[:100]!r}.")
        raise MCPError(types.INVALID_PARAMS, text)

    async def complete(
        self, _ctx: Context, _params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Returns no values."""
        return completion_of([])
