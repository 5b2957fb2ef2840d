"""Resources of functions, listed before stored ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.path_security import contains_path_traversal, is_absolute_path
from mcp.shared.uri_template import UriTemplate

from server.mcp.browsing.answers import no_resource_at
from server.mcp.browsing.handlers import ResourceHandlers
from server.mcp.browsing.offered_calls import OfferedCalls
from server.mcp.wire import resource_contents
from tools.core.browsing.offered import Offered
from tools.core.browsing.resource import ResourceSpec
from tools.core.content import EmbeddedResource
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError

Context = ServerRequestContext[Any, Any]
Found = tuple[ResourceSpec, dict[str, str | list[str]]]


class OfferedResources:
    """Handles resources/list, resources/templates/list and resources/read.

    Args:
        own: The stored resources.
        offered: What functions offer.
        calls: Runs them.
    """

    def __init__(self, own: ResourceHandlers, offered: Offered, calls: OfferedCalls) -> None:
        self._own = own
        self._offered = offered
        self._calls = calls

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Returns one page of stored resources; the first page starts with those of functions."""
        stored = await self._own.list_resources(ctx, params)
        if params is not None and params.cursor is not None:
            return stored
        await self._calls.ready()
        listed = [listed_resource(each) for each in self._visible(ctx) if not each.is_template]
        return stored.model_copy(update={"resources": [*listed, *stored.resources]})

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Returns the templates, those of functions first."""
        own = await self._own.list_templates(ctx, params)
        await self._calls.ready()
        listed = [listed_template(each) for each in self._visible(ctx) if each.is_template]
        return own.model_copy(update={"resource_templates": [*listed, *own.resource_templates]})

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Reads a resource from its function or from the store."""
        found = await self.find(ctx, params.uri)
        if found is None:
            return await self._own.read_resource(ctx, params)
        spec, values = found

        async def read(context: RequestContext) -> tuple[EmbeddedResource, ...]:
            _check_paths(params.uri, values)
            return await spec.read(spec.validate(values), context)

        try:
            contents = await self._calls.run(ctx, params, spec, read)
        except NotFoundError as error:
            raise no_resource_at(params.uri, ctx) from error
        if isinstance(contents, types.InputRequiredResult):
            return contents
        if not contents:
            raise no_resource_at(params.uri, ctx)
        return types.ReadResourceResult(
            contents=[resource_contents(each, params.uri) for each in contents]
        )

    async def find(self, ctx: Context, uri: str) -> Found | None:
        """Returns the function for an address, if the client may see it."""
        await self._calls.ready()
        named = self._offered.resources.get(uri)
        if named is not None and not named.is_template:
            return (named, {}) if self._calls.admits(ctx, named) else None
        for each in self._visible(ctx):
            values = _parse(each.uri).match(uri) if each.is_template else None
            if values is not None:
                return each, values
        return None

    def addresses(self, ctx: Context) -> list[str]:
        """Returns the functions' addresses and templates that the client may see."""
        return [each.uri for each in self._visible(ctx)]

    async def template(self, ctx: Context, uri: str) -> ResourceSpec | None:
        """Returns the template with this exact text, if the client may see it."""
        await self._calls.ready()
        found = self._offered.resources.get(uri)
        return found if found is not None and self._calls.admits(ctx, found) else None

    def _visible(self, ctx: Context) -> list[ResourceSpec]:
        return [each for each in self._offered.resources.values() if self._calls.admits(ctx, each)]


@lru_cache
def _parse(template: str) -> UriTemplate:
    return UriTemplate.parse(template)


def _check_paths(uri: str, values: dict[str, str | list[str]]) -> None:
    """Rejects values that could lead a function out of its directory.

    Any client may read a resource without approval.
    """
    for name, value in values.items():
        for each in [value] if isinstance(value, str) else value:
            if "\0" in each or contains_path_traversal(each) or is_absolute_path(each):
                raise InvalidArgumentsError(
                    f"{name} in {uri!r} leads elsewhere; leave out `..`, a leading slash and NUL."
                )


def _about(spec: ResourceSpec) -> dict[str, Any]:
    annotations = types.Annotations(audience=list(spec.audience) or None, priority=spec.priority)
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description or None,
        "mime_type": spec.mime_type or None,
        "annotations": annotations if spec.audience or spec.priority is not None else None,
    }


def listed_resource(spec: ResourceSpec) -> types.Resource:
    """Converts a resource for the list."""
    return types.Resource(uri=spec.uri, size=spec.size, **_about(spec))


def listed_template(spec: ResourceSpec) -> types.ResourceTemplate:
    """Converts a template for the list."""
    return types.ResourceTemplate(uri_template=spec.uri, **_about(spec))
