"""Skills as other servers list them: the extension's entries and requests."""

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
"""Maximum length of front matter as JSON."""


class SkillResource(BaseModel):
    """A file of a skill, with the digest that identifies its content."""

    model_config = ConfigDict(frozen=True, strict=True)

    uri: Annotated[str, Field(min_length=1, max_length=4_096)]
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]


class SkillEntry(BaseModel):
    """A skill: the address of its SKILL.md, its front matter, and all its files."""

    model_config = ConfigDict(frozen=True)

    uri: Annotated[str, Field(min_length=1, max_length=4_096)]
    frontmatter: dict[str, Any]
    resources: (
        Annotated[tuple[SkillResource, ...], Field(max_length=MOST_FILES)] | Literal["dynamic"]
    )


class SkillsPage(types.PaginatedResult):
    """One page of skills, unvalidated."""

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
    """Requests one page.

    Raises:
        ValidationError: If the answer is invalid.
    """
    return await session.send_request(
        _List(params=params or types.PaginatedRequestParams()), SkillsPage
    )


async def get_skill(session: ClientSession, uri: str) -> SkillEntry:
    """Requests one skill.

    Raises:
        ValidationError: If the answer is invalid.
    """
    answer = await session.send_request(_Get(params=SkillParams(uri=uri)), _GetResult)
    return answer.skill


def entries_in(page: SkillsPage) -> Iterable[SkillEntry]:
    """Yields the valid entries of a page."""
    for each in page.skills:
        try:
            entry = SkillEntry.model_validate(each)
            written = json.dumps(entry.frontmatter, allow_nan=False, ensure_ascii=False)
            written.encode()  # fails on unpaired surrogates
        except (ValidationError, ValueError, RecursionError):
            continue
        if len(written) <= MOST_CHARACTERS:
            yield entry


def roots_of(entries: Sequence[SkillEntry]) -> tuple[str, ...]:
    """Returns the lower-case prefixes of addresses that belong to a server's skills.

    If it has skills, all addresses with their scheme belong to them, in any case.
    """
    return (SCHEME, *(each.uri.removesuffix(MAIN).lower() for each in entries)) if entries else ()
