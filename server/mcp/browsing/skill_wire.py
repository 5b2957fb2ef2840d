"""The wire form of skills, as the protocol's extension defines it.

https://modelcontextprotocol.io/seps/2640-skills-extension
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types

from server.mcp.forwarding import SERVER_KEY
from storage.reading.formats import MARKDOWN
from tools.agent.skillfiles.skill import Skill
from tools.core.errors import NotFoundError
from tools.core.invisible import encodable

EXTENSION = "io.modelcontextprotocol/skills"
DIRECTORY = "inode/directory"


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
    """Returns a skill with the digests by which a client verifies its files.

    Args:
        skill: The skill.
        servers: The result of `servers_of` for all skills.
    """
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
