"""The skills visible to one client, and their form on the wire.

https://modelcontextprotocol.io/seps/2640-skills-extension
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from server.mcp.sessions import principal_of
from server.mcp.wire import SERVER_KEY
from storage.models import Identity
from storage.reading.formats import MARKDOWN
from tools.agent.skillfiles.skill import Skill
from tools.agent.skillfiles.skills import Skills
from tools.core.errors import NotFoundError
from tools.core.toolset import ToolSet
from tools.core.unicode_safety import encodable

Context = ServerRequestContext[Any, Any]


EXTENSION = "io.modelcontextprotocol/skills"
DIRECTORY = "inode/directory"


class SkillView:
    """Finds skills for a client; its methods block and belong in a worker thread."""

    def __init__(
        self,
        skills: Skills,
        identity: Identity,  # of requests without a token
        tool_set_of: Callable[[Context], ToolSet | None] = lambda _ctx: None,
        may_load: Callable[[ToolSet | None], bool] = lambda _tool_set: True,
    ) -> None:
        self._skills = skills
        self._identity = identity
        self._tool_set_of = tool_set_of
        self._may_load = may_load

    def visible_to(self, ctx: Context) -> Sequence[Skill]:
        """Returns the skills that the client may see; none if it may not load any."""
        tool_set = self._tool_set_of(ctx)
        return self._skills.seen_by(self._who(ctx), tool_set) if self._may_load(tool_set) else ()

    def changes(self) -> int:
        """Refreshes the skills and returns how often they have changed."""
        self._skills.all()
        return self._skills.changes

    def at(self, ctx: Context, uri: str) -> tuple[Skill, str]:
        """Returns the skill that contains an address, and the path in it.

        Raises:
            NotFoundError: If the client may see no skill there.
        """
        tool_set = self._tool_set_of(ctx)
        if not self._may_load(tool_set):
            raise NotFoundError(f"{uri!r} is not the address of a skill.")
        return self._skills.at(uri, self._who(ctx), tool_set)

    def find(self, ctx: Context, name: str) -> Skill:
        """Returns the skill of a name.

        Raises:
            NotFoundError: If the client may see no skill of that name.
        """
        tool_set = self._tool_set_of(ctx)
        if not self._may_load(tool_set):
            raise NotFoundError("The profile of this client leaves skills out.")
        return self._skills.find(name, self._who(ctx), tool_set)

    def _who(self, ctx: Context) -> Identity:
        return principal_of(ctx, self._identity).identity


class SkillParams(types.RequestParams):
    """Parameters that name a skill."""

    uri: str


class ReadParams(types.PaginatedRequestParams):
    """Parameters that name a directory."""

    uri: str


def servers_of(skills: Sequence[Skill]) -> Mapping[str, str]:
    """Maps paths of skills to their servers."""
    return {each.path: each.place.server for each in skills}


def entry_of(skill: Skill, servers: Mapping[str, str]) -> dict[str, Any]:
    """Returns a skill with the digests by which a client verifies its files."""
    if not skill.is_conforming:
        raise NotFoundError(" ".join(skill.problems))
    for path, server in servers.items():
        own = f"{path}/".removeprefix(f"{skill.path}/")
        if own in {"", f"{path}/"} or (server and server == skill.place.server):
            continue
        if any(f"{each.path}/".startswith(own) for each in skill.listed()[0]):
            raise NotFoundError(f"One of its directories has the address of the skill {path!r}.")
    files = [
        {"uri": skill.uri(each.path), "digest": each.digest, "size": each.size}
        for each in skill.manifest()
    ]
    entry = {"uri": skill.uri(), "frontmatter": skill.frontmatter, "resources": files}
    meta = _meta_of(skill)
    return {**entry, "_meta": meta} if meta else entry


def main_of(skill: Skill) -> types.Resource:
    """Returns the SKILL.md of a skill as a listed resource."""
    return types.Resource(
        uri=skill.uri(),
        name=skill.name,
        title=f"{skill.path} (skill, {encodable(skill.place.shown)})",
        description=encodable(skill.description),
        mime_type=MARKDOWN.media_type,
        _meta=_meta_of(skill),
    )


def file_of(skill: Skill, path: str, size: int) -> types.Resource:
    """Returns another file of a skill as a listed resource."""
    return types.Resource(
        uri=skill.uri(path),
        name=encodable(path.rpartition("/")[2]),
        size=size,
        mime_type=media_type(path),
        _meta=_meta_of(skill),
    )


def directory_at(uri: str, name: str) -> types.Resource:
    """Returns a directory in a skill, or of several skills, as a listed resource."""
    return types.Resource(uri=uri, name=encodable(name), mime_type=DIRECTORY)


def media_type(path: str) -> str | None:
    """Guesses the media type of a file by its name."""
    if path.endswith(".md"):
        return MARKDOWN.media_type
    return mimetypes.guess_type(path.rpartition("/")[2])[0]


def _meta_of(skill: Skill) -> Mapping[str, Any] | None:
    return {SERVER_KEY: skill.place.server} if skill.place.server else None
