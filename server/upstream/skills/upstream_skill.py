"""One skill of another server, validated for use here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote

from server.upstream.connections.skill_entries import SkillEntry, SkillResource
from tools.agent.skillfiles.local import is_name
from tools.agent.skillfiles.skill import (
    DESCRIPTION_CHARACTERS,
    MAIN,
    MOST_BYTES,
    SCHEME,
    ManifestFile,
    Skill,
    SkillFile,
)
from tools.core.errors import NotFoundError, PermissionDeniedError, UnavailableError

LONGEST_PATH = 200
"""Maximum length of a skill's path, with the name of its server."""

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[\x21-\x7e]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, slots=True)
class Address:
    """The locations of an entry's files, at the server and here.

    Attributes:
        path: The path of the skill here: its server, then its own path.
        files: Its files by relative path; empty if they are dynamic.
    """

    path: str
    files: Mapping[str, SkillResource]

    @classmethod
    def of(cls, server: str, entry: SkillEntry) -> Address:
        """Validates an entry and returns its address.

        Raises:
            ValueError: If it is invalid; the message is the rest of a sentence.
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
    """A skill of another server, whose text comes from that server.

    Attributes:
        entry: The entry from the server's listing.
        files: Its files by relative path; empty if they are dynamic.
        quarantine_reason: Why it needs review; empty if it does not.
        fetch: Reads a file from the server and checks it; blocks, in a worker thread.
    """

    entry: SkillEntry
    files: Mapping[str, SkillResource]
    quarantine_reason: str = ""
    fetch: Callable[[SkillEntry, str], bytes] = field(compare=False, repr=False)

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
        """Reads a file from the server and checks it against the entry.

        Raises:
            NotFoundError: If there is no such file.
        """
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
    """Rejects an invalid path.

    Raises:
        NotFoundError: If the path is invalid.
    """
    if _CONTROL.search(path) or any(part in {"", ".", ".."} for part in path.split("/")):
        raise NotFoundError(f"{path[:100]!r} is not a valid path of a file.")
