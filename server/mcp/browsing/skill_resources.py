"""Skills as resources, listed after stored ones: `skill://NAME/SKILL.md` and other files."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from server.mcp.browsing.answers import no_resource_at
from server.mcp.browsing.handlers import ResourceHandlers
from server.mcp.browsing.skill_view import SkillView
from server.mcp.browsing.skill_wire import main_of, media_type
from server.mcp.resources import read_in_thread
from tools.agent.skillfiles.skill import SCHEME
from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    PermissionDeniedError,
)

Context = ServerRequestContext[Any, Any]

TEMPLATE = types.ResourceTemplate(
    uri_template="skill://{name}/{+file}",
    name="skill",
    title="File of a skill",
    description="SKILL.md has the instructions of a skill, and refers to its other files.",
)
UNKNOWN_TYPE = "application/octet-stream"


class SkillResources:
    """Handles resources/list, resources/templates/list and resources/read.

    Args:
        own: The stored resources.
        view: The skills that a client may see.
    """

    def __init__(self, own: ResourceHandlers, view: SkillView) -> None:
        self._own = own
        self._view = view

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Returns one page of stored resources; the first page ends with the skills."""
        stored = await self._own.list_resources(ctx, params)
        if params is not None and params.cursor is not None:
            return stored
        skills = await read_in_thread("resources/list", partial(self._view.visible_to, ctx))
        return stored.model_copy(update={"resources": [*stored.resources, *map(main_of, skills)]})

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Returns the templates, that of skills last."""
        own = await self._own.list_templates(ctx, params)
        return own.model_copy(update={"resource_templates": [*own.resource_templates, TEMPLATE]})

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Reads a file of a skill, or a stored resource."""
        uri = params.uri
        if not uri.startswith(SCHEME):
            return await self._own.read_resource(ctx, params)
        try:
            path, data = await read_in_thread("resources/read", partial(self._read, ctx, uri))
        except NotFoundError as error:
            raise no_resource_at(uri, ctx) from error
        return types.ReadResourceResult(contents=[_contents(uri, path, data)])

    def _read(self, ctx: Context, uri: str) -> tuple[str, bytes]:
        skill, path = self._view.at(ctx, uri)
        try:
            return path, skill.data(path)
        except (InvalidArgumentsError, OutsideSandboxError, PermissionDeniedError) as error:
            raise NotFoundError(error.message) from error


def _contents(
    uri: str, path: str, data: bytes
) -> types.TextResourceContents | types.BlobResourceContents:
    """Returns the content of a file unchanged: as text if it is UTF-8, otherwise as a blob."""
    kind = media_type(path)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        blob = base64.b64encode(data).decode()
        return types.BlobResourceContents(uri=uri, mime_type=kind or UNKNOWN_TYPE, blob=blob)
    return types.TextResourceContents(uri=uri, mime_type=kind or "text/plain", text=text)
