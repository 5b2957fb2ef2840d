"""Skills as other servers list them, validated for use here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import mcp_types as types
from mcp import ClientSession
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from server.mcp.browsing.skill_view import SkillParams
from tools.agent.skillfiles.local import is_name
from tools.agent.skillfiles.skill import (
    DESCRIPTION_CHARACTERS,
    MAIN,
    MOST_BYTES,
    MOST_FILES,
    SCHEME,
    ManifestFile,
    Skill,
    SkillFile,
)
from tools.core.errors import NotFoundError, PermissionDeniedError, UnavailableError

MOST_CHARACTERS = 65_536
"""Maximum length of front matter as JSON."""


LONGEST_PATH = 200
"""Maximum length of a skill's path, with the name of its server."""

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[\x21-\x7e]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")


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


class GetSkillResult(types.Result):
    """One skill."""

    skill: SkillEntry


class _List(types.Request[types.PaginatedRequestParams, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"


class GetSkill(types.Request[SkillParams, Literal["skills/get"]]):
    """Requests one skill."""

    method: Literal["skills/get"] = "skills/get"


async def list_skills(
    session: ClientSession, *, params: types.PaginatedRequestParams | None
) -> SkillsPage:
    """Requests one page."""
    return await session.send_request(
        _List(params=params or types.PaginatedRequestParams()), SkillsPage
    )


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


@dataclass(frozen=True, slots=True)
class Address:
    """The locations of an entry's files, at the server and here."""

    path: str  # here: its server, then its own path
    files: Mapping[str, SkillResource]  # by relative path; empty if they are dynamic

    @classmethod
    def of(cls, server: str, entry: SkillEntry) -> Address:
        """Validates an entry and returns its address.

        Raises a ValueError, whose message is the rest of a sentence, if it is invalid.
        """
        name, said = entry.frontmatter.get("name"), entry.frontmatter.get("description")
        if not isinstance(name, str) or not is_name(name):
            raise ValueError("its name is not one of a-z, 0-9 and hyphens")
        if not isinstance(said, str) or not said.strip():
            raise ValueError("it has no description")
        if len(said) > DESCRIPTION_CHARACTERS:
            raise ValueError(f"its description has more than {DESCRIPTION_CHARACTERS} characters")
        root = entry.uri.removesuffix(f"/{MAIN}")
        if root == entry.uri or not _ADDRESS.fullmatch(root) or {"?", "#"} & {*root}:
            raise ValueError("its address is not that of a SKILL.md")
        segments = root.removeprefix(SCHEME).split("/") if root.startswith(SCHEME) else [name]
        if segments[-1] != name:
            raise ValueError("its address does not end with its name")
        path = "/".join([server, *segments])
        if len(path) > LONGEST_PATH or not all(map(_SEGMENT.fullmatch, segments)):
            raise ValueError("its address has segments that are not valid names")
        return cls(path, _files(root, entry))


@dataclass(frozen=True, kw_only=True)
class UpstreamSkill(Skill):
    """A skill of another server, whose text comes from that server."""

    entry: SkillEntry
    files: Mapping[str, SkillResource]  # by relative path; empty if they are dynamic
    quarantine_reason: str = ""  # why it needs review
    fetch: Callable[[SkillEntry, str], bytes] = field(compare=False, repr=False)
    """Reads a file from the server and checks it; blocks, in a worker thread."""

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """Empty: another server cannot allow tools here."""
        return ()

    def listed(self) -> tuple[list[SkillFile], bool]:
        """Returns its known files, SKILL.md first."""
        files = [SkillFile(path, each.size) for path, each in self.files.items()]
        return files or [SkillFile(MAIN, 0)], False

    def directories(self) -> frozenset[str]:
        """Returns the directories of its files."""
        parents = (parent for path in self.files for parent in PurePosixPath(path).parents)
        return frozenset(map(str, parents)) - {"."}

    def manifest(self) -> tuple[ManifestFile, ...]:
        """Returns path, size and digest of each file."""
        if not self.files:
            raise UnavailableError("Its files are dynamic, so their state cannot be identified.")
        return tuple(
            ManifestFile(path, each.size, each.digest) for path, each in self.files.items()
        )

    def nested(self) -> tuple[Skill, ...]:
        """Returns an empty tuple: nested skills have their own entries."""
        return ()

    def data(self, path: str) -> bytes:
        """Reads a file from the server and checks it against the entry."""
        if self.quarantine_reason:
            raise PermissionDeniedError(
                f"The skill {self.path!r} is in quarantine: {self.quarantine_reason}.",
                next_actions=[
                    f"Ask the user to run `toolcrib servers review {self.place.server}`."
                ],
            )
        if self.files:
            found = self.files.get(path)
            if found is None:
                raise NotFoundError(f"{path!r} is not a file in the skill {self.path!r}.")
            return self.fetch(self.entry, found.uri)
        _check(path)
        return self.fetch(self.entry, self.entry.uri.removesuffix(MAIN) + path)


def _files(root: str, entry: SkillEntry) -> Mapping[str, SkillResource]:
    if entry.resources == "dynamic":
        return {}
    files: dict[str, SkillResource] = {}
    for each in entry.resources:
        relative = each.uri.removeprefix(f"{root}/")
        if relative == each.uri or {"?", "#"} & {*relative}:
            raise ValueError("it lists what is outside its directory")
        path = unquote(relative)
        try:
            _check(path)
        except NotFoundError as error:
            raise ValueError("it lists an invalid path") from error
        if path in files:
            raise ValueError("it lists a file twice")
        files[path] = each
    if MAIN not in files:
        raise ValueError("it does not list its SKILL.md")
    if sum(each.size for each in files.values()) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return {MAIN: files.pop(MAIN), **dict(sorted(files.items()))}


def _check(path: str) -> None:
    if _CONTROL.search(path) or any(part in {"", ".", ".."} for part in path.split("/")):
        raise NotFoundError(f"{path[:100]!r} is not a valid path of a file.")
