"""One skill of another server: what its entry says, where that can be used here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote

from server.upstream.connections.skill_entries import SkillEntry, SkillResource
from tools.agent.skillfiles.frontmatter import DESCRIPTION_CHARACTERS
from tools.agent.skillfiles.local import is_name
from tools.agent.skillfiles.skill import (
    MAIN,
    MOST_BYTES,
    SCHEME,
    ManifestFile,
    Skill,
    SkillFile,
)
from tools.core.errors import NotFoundError, PermissionDeniedError, UnavailableError

LONGEST_PATH = 200
"""Characters of what a skill is called, with the name of its server."""

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[\x21-\x7e]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the files of an entry are, at their server and here.

    Attributes:
        path: What the skill is called here: its server, then its own path.
        files: Its files, by their paths relative to it; none where they are dynamic.
    """

    path: str
    files: Mapping[str, SkillResource]

    @classmethod
    def of(cls, server: str, entry: SkillEntry) -> Address:
        """The address of an entry that is as the specification wants it.

        Raises:
            ValueError: If it is not; the message is the rest of a sentence.
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
            raise ValueError("its address has parts that are no names")
        return cls(path, _files(root, entry))


@dataclass(frozen=True, kw_only=True)
class UpstreamSkill(Skill):
    """A skill of another server; its text is what that server says.

    Attributes:
        entry: As the server lists it.
        files: Its files, by their paths relative to it; none where they are dynamic.
        barred: Why a person has to look at it first; empty where none has to.
        fetch: Reads a file of it at its server, and checks it; blocks, in a worker thread.
    """

    entry: SkillEntry
    files: Mapping[str, SkillResource]
    barred: str = ""
    fetch: Callable[[SkillEntry, str], bytes] = field(compare=False, repr=False)

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """None: another server allows nothing here."""
        return ()

    def listed(self) -> tuple[list[SkillFile], bool]:
        """Its files as far as they are known, SKILL.md first."""
        files = [SkillFile(path, each.size) for path, each in self.files.items()]
        return files or [SkillFile(MAIN, 0)], False

    def directories(self) -> frozenset[str]:
        """Those that its files are in."""
        parents = (parent for path in self.files for parent in PurePosixPath(path).parents)
        return frozenset(map(str, parents)) - {"."}

    def manifest(self) -> tuple[ManifestFile, ...]:
        """What its entry says of each file."""
        if not self.files:
            raise UnavailableError("Its files are dynamic: nothing tells one state from another.")
        return tuple(
            ManifestFile(path, each.size, each.digest) for path, each in self.files.items()
        )

    def nested(self) -> tuple[Skill, ...]:
        """None: each has an entry of its own."""
        return ()

    def data(self, path: str) -> bytes:
        """The bytes of one of its files from its server, if they are those of the entry.

        Raises:
            NotFoundError: If it has no such file.
        """
        if self.barred:
            raise PermissionDeniedError(
                f"The skill {self.path!r} is in quarantine: {self.barred}.",
                next_actions=[
                    f"Ask the user to run `toolcrib servers review {self.place.server}`."
                ],
            )
        if self.files:
            found = self.files.get(path)
            if found is None:
                raise NotFoundError(f"{path!r} is no file of the skill {self.path!r}.")
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
            raise ValueError("it lists what is no path of a file") from error
        if path in files:
            raise ValueError("it lists a file twice")
        files[path] = each
    if MAIN not in files:
        raise ValueError("it does not list its SKILL.md")
    if sum(each.size for each in files.values()) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return {MAIN: files.pop(MAIN), **dict(sorted(files.items()))}


def _check(path: str) -> None:
    """Refuses what is no path of a file.

    Raises:
        NotFoundError: Because it is none.
    """
    if _CONTROL.search(path) or any(part in {"", ".", ".."} for part in path.split("/")):
        raise NotFoundError(f"{path[:100]!r} is no path of a file.")
