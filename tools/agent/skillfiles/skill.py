"""One skill: what its SKILL.md says, and the files beside it, opened when they are read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from storage.errors import UnreadableDocumentError
from storage.reading.decode import decode
from tools.agent.skillfiles.frontmatter import DESCRIPTION_CHARACTERS, FrontMatter, names_of
from tools.agent.skillfiles.places import SkillPlace, slug
from tools.core.errors import InvalidArgumentsError, NotFoundError, UnavailableError
from tools.core.invisible import hidden, revealed
from tools.sandbox.files.listing import list_entries
from tools.sandbox.files.openat import identity
from tools.sandbox.files.sandbox import Sandbox

__all__ = ["MAIN", "MOST_BYTES", "MOST_FILES", "SCHEME", "Skill", "SkillFile"]

MAIN = "SKILL.md"
SCHEME = "skill://"
MOST_FILES = 512
MOST_BYTES = 16 * 1024 * 1024
"""What a skill may have, all its files together (SEP-2640)."""

MOST_MAIN_BYTES = 262_144
"""What a SKILL.md may have: more fits into no model."""

MOST_ENTRIES = 2_048
"""Names that are looked at to find the files; directories count."""

MOST_DEPTH = 10

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
LONGEST_NAME = 64
_PASSED_OVER = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill.

    Attributes:
        path: Relative to the skill, with `/`.
        size: Its bytes.
    """

    path: str
    size: int


@dataclass(frozen=True)
class Skill:
    """A skill, as its SKILL.md was when it was looked at.

    Attributes:
        path: What it is called here: its name, with a label before it where another is called so.
        name: Its own name, `[a-z0-9-]{1,64}`.
        description: What it does and when it helps, in one line.
        frontmatter: All that its SKILL.md says of it, verbatim, as JSON has it.
        place: Where it was found.
        directory: Where it lies, absolute.
        main_digest: Tells its SKILL.md from every other text.
        problems: What is wrong with it, each as a sentence.
    """

    path: str
    name: str
    description: str
    frontmatter: Mapping[str, Any]
    place: SkillPlace
    directory: Path
    main_digest: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def read(cls, place: SkillPlace, directory: Path) -> Skill:
        """Reads a SKILL.md.

        Raises:
            ToolError: If it is not to be opened, or no text of a bearable length.
        """
        data = _read(place.sandbox.within(str(directory)), MAIN, MOST_MAIN_BYTES)
        text = _text_of(data, MAIN)
        found = FrontMatter.of(text)
        given = found.fields.get("name")
        named = given if isinstance(given, str) else directory.name
        name = named if _is_name(named) else slug(named)
        said = found.description
        problems = [*found.problems]
        if found.fields and not isinstance(given, str):
            problems.append("It has no name.")
        if name != named:
            problems.append(f"Its name is {revealed(repr(named))[:100]}, not a-z, 0-9 and hyphens.")
        if found.fields and not found.text("description"):
            problems.append("It has no description.")
        if len(found.text("description")) > DESCRIPTION_CHARACTERS:
            problems.append(f"Its description has more than {DESCRIPTION_CHARACTERS} characters.")
        if odd := hidden(said):
            problems.append(f"Its description hides characters ({_codes(odd)}).")
        return cls(
            path=name,
            name=name,
            description=revealed(said),
            frontmatter=found.fields,
            place=place,
            directory=directory,
            main_digest=hashlib.sha256(data).hexdigest(),
            problems=tuple(problems),
        )

    def uri(self, path: str = MAIN) -> str:
        """The address of one of its files (SEP-2640)."""
        return f"{SCHEME}{self.path}/{quote(os.fsencode(path))}"

    @property
    def is_conforming(self) -> bool:
        """Whether its SKILL.md is as the specification wants it, so that every host takes it."""
        return not self.problems

    @property
    def is_for_models(self) -> bool:
        """Whether a model may load it unasked."""
        return self.frontmatter.get("disable-model-invocation") is not True

    @property
    def required_tools(self) -> tuple[str, ...]:
        """The tools without which it does not work."""
        return self._names("required_tools", "required-tools")

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """The tools that its author expects it to use, in the names that they have elsewhere."""
        return self._names("allowed-tools", "allowed_tools")

    @property
    def domains(self) -> tuple[str, ...]:
        """What it knows about, in words."""
        found = self._found("knowledge_domains", "knowledge-domains")
        texts = found if isinstance(found, list) else str(found or "").split(",")
        return tuple(each.strip() for each in texts if isinstance(each, str) and each.strip())

    @cached_property
    def files(self) -> Sandbox:
        """The files beneath its directory, which no link in there leads out of."""
        return self.place.sandbox.within(str(self.directory))

    def listed(self) -> tuple[list[SkillFile], bool]:
        """Its files, SKILL.md first, and whether there are more than a skill may have.

        Links are none, nor names that begin with a dot and what programs generate.

        Raises:
            ToolError: If its directory is not to be opened.
        """
        closed = self.files.closed()
        fd = self.files.open_directory()
        try:
            listing = list_entries(
                fd,
                ".",
                depth=MOST_DEPTH,
                limit=MOST_ENTRIES,
                hides=lambda status: identity(status) in closed,
                leaves_out=_is_passed_over,
            )
        finally:
            os.close(fd)
        found = [SkillFile(each.path, each.size) for each in listing.entries if each.type == "file"]
        found.sort(key=lambda each: (each.path != MAIN, each.path))
        too_many = listing.truncated or len(found) > MOST_FILES
        return found[:MOST_FILES], too_many or sum(each.size for each in found) > MOST_BYTES

    def measured(self, path: str) -> tuple[int, str]:
        """The size of one of its files, and its SHA-256 as `sha256:` and hexadecimal digits.

        Raises:
            ToolError: If it is no file of the skill, not to be opened, or too large.
        """
        data = self.data(path)
        return len(data), f"sha256:{hashlib.sha256(data).hexdigest()}"

    def data(self, path: str) -> bytes:
        """The bytes of one of its files.

        Raises:
            ToolError: If it is no file of the skill, not to be opened, or too large.
        """
        if any(map(_is_passed_over, path.split("/"))):
            raise NotFoundError(f"{path!r} is no file of the skill {self.path!r}.")
        return _read(self.files, path, MOST_BYTES)

    def text(self, path: str) -> str:
        r"""The text of one of its files, whose lines end with \n.

        Raises:
            ToolError: If it is no file of the skill, not to be opened, too large, or no text.
        """
        return _text_of(self.data(path), path)

    def _names(self, *keys: str) -> tuple[str, ...]:
        return names_of(self._found(*keys))

    def _found(self, *keys: str) -> object:
        """A field, at the top or in `metadata`, where the specification has room for more."""
        metadata = self.frontmatter.get("metadata")
        tables = (self.frontmatter, metadata if isinstance(metadata, dict) else {})
        return next((table[key] for table in tables for key in keys if key in table), None)


def _read(files: Sandbox, path: str, most: int) -> bytes:
    found = files.read(path, max_bytes=most)
    if found.truncated:
        raise UnavailableError(
            f"{path!r} has more than {most:,} bytes.",
            next_actions=["Use the file where it lies, or load another one."],
        )
    return found.data


def _text_of(data: bytes, path: str) -> str:
    try:
        text = decode(data).text
    except UnreadableDocumentError as error:
        raise InvalidArgumentsError(
            f"{path!r} is not text ({len(data):,} bytes).",
            next_actions=["Use the file where it lies, or load another one."],
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def _is_passed_over(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.strip(".") != "" and (name.startswith(".") or name in _PASSED_OVER)


def _codes(characters: list[str]) -> str:
    return ", ".join(f"U+{ord(each):04X}" for each in characters[:3])
