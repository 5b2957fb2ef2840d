"""Skills over MCP: the extension's methods that list skills and check their files."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.answers import Section, page
from server.mcp.browsing.skill_view import (
    EXTENSION,
    ReadParams,
    SkillParams,
    SkillView,
    directory_at,
    entry_of,
    file_of,
    main_of,
    servers_of,
)
from server.mcp.resources import read_in_thread
from server.mcp.wire import wire_form
from tools.agent.skillfiles.skill import MAIN, SCHEME, Skill
from tools.agent.skillfiles.skills import path_of
from tools.core.errors import NotFoundError, ToolError
from tools.core.unicode_safety import encodable

SKILLS_PAGE = 50
"""Skills on one page; each has up to 512 files."""

TTL_MS = 10_000
"""Time that a client may cache an answer: files change at any time."""

_ANSWERED = {"ttlMs": TTL_MS, "cacheScope": "private"}

Context = ServerRequestContext[Any, Any]

_logger = logging.getLogger("toolcrib")


class SkillMethods:
    """Handles `skills/list`, `skills/get` and `resources/directory/read`.

    Leaves out, and logs, what no host could use: skills that do not follow the specification, and
    those with more files or bytes than it allows.
    """

    def __init__(self, view: SkillView) -> None:
        self._view = view
        self._told: set[tuple[str, str]] = set()

    def register(self, server: Server[Any]) -> None:
        """Registers the methods and the extension's capability."""
        server.extensions[EXTENSION] = {"directoryRead": True}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list)
        server.add_request_handler("skills/get", SkillParams, self._get)
        server.add_request_handler("resources/directory/read", ReadParams, self._read)

    async def _list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        """Returns one page of skills, each complete, including nested ones."""
        skills = await read_in_thread("skills/list", partial(self._view.visible_to, ctx))

        async def sections() -> list[Section[Skill]]:
            return [Section.of("all", skills)]

        shown, following = await page("skills", [sections], params, SKILLS_PAGE)
        entries = partial(self._entries, shown, servers_of(skills))
        listed = await read_in_thread("skills/list", entries)
        more = {} if following is None else {"nextCursor": following}
        return {"skills": listed, **more, **_ANSWERED}

    async def _get(self, ctx: Context, params: SkillParams) -> dict[str, Any]:
        """Returns a skill by the address of its SKILL.md."""
        try:
            found = await read_in_thread("skills/get", partial(self._entry_at, ctx, params.uri))
        except NotFoundError as error:
            raise MCPError(types.INVALID_PARAMS, encodable(error.message)) from error
        return {"skill": found, **_ANSWERED}

    async def _read(self, ctx: Context, params: ReadParams) -> dict[str, Any]:
        """Returns one page of the direct children of a directory."""
        read = partial(self._children, ctx, params.uri)
        try:
            found = await read_in_thread("resources/directory/read", read)
        except NotFoundError as error:
            raise MCPError(types.INVALID_PARAMS, encodable(error.message)) from error

        async def sections() -> list[Section[types.Resource]]:
            return [Section.of(quote(params.uri), found)]

        listed, following = await page("directory", [sections], params)
        more = {} if following is None else {"nextCursor": following}
        return {"resources": [*map(wire_form, listed)], **more}

    def _entries(self, skills: Sequence[Skill], taken: Mapping[str, str]) -> list[dict[str, Any]]:
        """Returns the entries of skills and nested ones; logs once why one is left out."""
        entries: list[dict[str, Any]] = []
        for skill in skills:
            try:
                entries += [entry_of(each, taken) for each in (skill, *skill.nested())]
            except ToolError as error:
                if (skill.path, error.message) not in self._told:
                    self._told.add((skill.path, error.message))
                    _logger.warning(
                        "The skill %r is not listed by skills/list: %s", skill.path, error.message
                    )
        return entries

    def _entry_at(self, ctx: Context, uri: str) -> dict[str, Any]:
        """Returns the entry of the skill whose SKILL.md has an address."""
        skills = self._view.visible_to(ctx)
        inside = _inside(skills, path_of(uri)) if uri.startswith(SCHEME) else None
        for each in () if inside is None else (inside, *inside.nested()):
            if each.uri() == uri:
                return entry_of(each, servers_of(skills))
        raise NotFoundError(f"{uri!r} is not the address of a skill.")

    def _children(self, ctx: Context, uri: str) -> list[types.Resource]:
        """Returns the direct children of a directory in or above skills."""
        skills, path = self._view.visible_to(ctx), path_of(uri).removesuffix("/")
        if uri.startswith(SCHEME):
            skill = _inside(skills, path)
            found = {} if skill is None else _within(skill, path[len(skill.path) + 1 :])
            found |= _above(skills, path)
            if found or skill is not None:
                return [*found.values()]
        raise _no_directory(uri)


def _inside(skills: Sequence[Skill], path: str) -> Skill | None:
    """Returns the skill at a path, or the one that contains it."""
    found = (each for each in skills if f"{path}/".startswith(f"{each.path}/"))
    return max(found, key=lambda each: len(each.path), default=None)


def _within(skill: Skill, inner: str) -> dict[str, types.Resource]:
    """Returns the direct children of a skill's directory by name."""
    directories = skill.directories()
    if inner and inner not in directories:
        raise _no_directory(skill.uri(inner))
    found: dict[str, types.Resource] = {}
    for file in skill.listed()[0]:
        parent, _, name = file.path.rpartition("/")
        if parent == inner:
            is_main = file.path == MAIN
            found[name] = main_of(skill) if is_main else file_of(skill, file.path, file.size)
    for each in sorted(directories):
        parent, _, name = each.rpartition("/")
        if parent == inner:
            found[name] = directory_at(skill.uri(each), name)
    return found


def _above(skills: Sequence[Skill], path: str) -> dict[str, types.Resource]:
    """Returns the direct children, by name, of a directory that contains skills."""
    before = f"{path}/" if path else ""
    names = (
        each.path[len(before) :].partition("/")[0]
        for each in skills
        if each.path.startswith(before)
    )
    return {name: directory_at(SCHEME + quote(before + name), name) for name in names}


def _no_directory(uri: str) -> NotFoundError:
    return NotFoundError(f"{uri!r} is not the address of a directory.")
