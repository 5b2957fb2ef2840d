"""Skills as resources, after what is stored here: `skill://NAME/SKILL.md` and other files."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Callable
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from server.mcp.browsing.answers import no_resource_at
from server.mcp.browsing.handlers import ResourceHandlers
from server.mcp.resources import answered
from server.mcp.safe_json import utf8_text
from server.mcp.sessions import principal_of
from storage.models import Identity
from storage.reading.formats import MARKDOWN
from tools.agent.skillfiles.skill import SCHEME, Skill
from tools.agent.skillfiles.skills import Skills
from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    PermissionDeniedError,
)

__all__ = ["SkillResources"]

Context = ServerRequestContext[Any, Any]

TEMPLATE = types.ResourceTemplate(
    uri_template="skill://{name}/{+file}",
    name="skill",
    title="File of a skill",
    description="SKILL.md has the instructions of a skill, and refers to its other files.",
)
UNKNOWN_TYPE = "application/octet-stream"


class SkillResources:
    """Answers resources/list, resources/templates/list and resources/read.

    Args:
        own: What is stored here.
        skills: The skills.
        identity: Who asks where no token says it.
        may_load: Whether whoever asks may load skills.
    """

    def __init__(
        self,
        own: ResourceHandlers,
        skills: Skills,
        identity: Identity,
        may_load: Callable[[Context], bool],
    ) -> None:
        self._own = own
        self._skills = skills
        self._identity = identity
        self._may_load = may_load

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """One page of what is stored here; the first page ends with the skills.

        Raises:
            MCPError: Invalid params, if the cursor is none of ours.
        """
        stored = await self._own.list_resources(ctx, params)
        if (params is not None and params.cursor is not None) or not self._may_load(ctx):
            return stored
        skills = await answered("resources/list", partial(self._skills.seen_by, self._who(ctx)))
        return stored.model_copy(update={"resources": [*stored.resources, *map(_listed, skills)]})

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """How addresses are made: last of skills."""
        own = await self._own.list_templates(ctx, params)
        return own.model_copy(update={"resource_templates": [*own.resource_templates, TEMPLATE]})

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """A file of a skill, as it is, or what is stored here.

        Raises:
            MCPError: Resource not found, in the code of the connection's protocol.
        """
        uri = params.uri
        if not uri.startswith(SCHEME):
            return await self._own.read_resource(ctx, params)
        if not self._may_load(ctx):
            raise no_resource_at(uri, ctx)
        try:
            path, data = await answered("resources/read", partial(self._read, self._who(ctx), uri))
        except NotFoundError as error:
            raise no_resource_at(uri, ctx) from error
        return types.ReadResourceResult(contents=[_contents(uri, path, data)])

    def _who(self, ctx: Context) -> Identity:
        return principal_of(ctx, self._identity).identity

    def _read(self, identity: Identity, uri: str) -> tuple[str, bytes]:
        skill, path = self._skills.at(uri, identity)
        try:
            return path, skill.data(path)
        except (InvalidArgumentsError, OutsideSandboxError, PermissionDeniedError) as error:
            raise NotFoundError(error.message) from error


def _listed(skill: Skill) -> types.Resource:
    return types.Resource(
        uri=skill.uri(),
        name=skill.name,
        title=f"{skill.path} (skill, {utf8_text(skill.place.shown)})",
        description=utf8_text(skill.description),
        mime_type=MARKDOWN.media_type,
    )


def _contents(
    uri: str, path: str, data: bytes
) -> types.TextResourceContents | types.BlobResourceContents:
    """The content of a file, byte by byte: what is no UTF-8 is sent as it is."""
    kind = MARKDOWN.media_type if path.endswith(".md") else mimetypes.guess_type(path)[0]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        blob = base64.b64encode(data).decode()
        return types.BlobResourceContents(uri=uri, mime_type=kind or UNKNOWN_TYPE, blob=blob)
    return types.TextResourceContents(uri=uri, mime_type=kind or "text/plain", text=text)
