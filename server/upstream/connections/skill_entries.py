"""Skills as another server lists them: the entries of the extension, and how they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import mcp_types as types
from mcp import ClientSession
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from server.mcp.browsing.skill_wire import SkillParams
from tools.agent.skillfiles.skill import MAIN, MOST_FILES, SCHEME

MOST_CHARACTERS = 65_536
"""Of front matter as JSON."""


class SkillResource(BaseModel):
    """A file of a skill, and what tells whether it is still the same."""

    model_config = ConfigDict(frozen=True, strict=True)

    uri: Annotated[str, Field(min_length=1, max_length=4_096)]
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]


class SkillEntry(BaseModel):
    """A skill: the address of its SKILL.md, what that says of it, and all its files."""

    model_config = ConfigDict(frozen=True)

    uri: Annotated[str, Field(min_length=1, max_length=4_096)]
    frontmatter: dict[str, Any]
    resources: (
        Annotated[tuple[SkillResource, ...], Field(max_length=MOST_FILES)] | Literal["dynamic"]
    )


class SkillsPage(types.PaginatedResult):
    """One page of skills, each as it came."""

    skills: list[Any]


class _GetResult(types.Result):
    skill: SkillEntry


class _List(types.Request[types.PaginatedRequestParams, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"


class _Get(types.Request[SkillParams, Literal["skills/get"]]):
    method: Literal["skills/get"] = "skills/get"


async def list_skills(
    session: ClientSession, *, params: types.PaginatedRequestParams | None
) -> SkillsPage:
    """Asks for one page.

    Raises:
        ValidationError: If it answers not as the protocol has it.
    """
    return await session.send_request(
        _List(params=params or types.PaginatedRequestParams()), SkillsPage
    )


async def get_skill(session: ClientSession, uri: str) -> SkillEntry:
    """Asks for one skill.

    Raises:
        ValidationError: If it answers not as the protocol has it.
    """
    answer = await session.send_request(_Get(params=SkillParams(uri=uri)), _GetResult)
    return answer.skill


def entries_in(page: SkillsPage) -> Iterable[SkillEntry]:
    """The entries of a page that have a form and a length that can be used."""
    for each in page.skills:
        try:
            entry = SkillEntry.model_validate(each)
            written = json.dumps(entry.frontmatter, allow_nan=False, ensure_ascii=False)
            written.encode()  # no half of a character
        except (ValidationError, ValueError, RecursionError):
            continue
        if len(written) <= MOST_CHARACTERS:
            yield entry


def roots_of(entries: Sequence[SkillEntry]) -> tuple[str, ...]:
    """What addresses at a server begin with, in small letters, that are in one of its skills.

    Where it has skills, all that has their scheme counts, however it is written.
    """
    return (SCHEME, *(each.uri.removesuffix(MAIN).lower() for each in entries)) if entries else ()
