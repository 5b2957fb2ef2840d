"""One skill: what its SKILL.md says, and the files beside it."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from storage.errors import UnreadableDocumentError
from storage.reading.decode import decode
from tools.agent.skillfiles.frontmatter import names_of
from tools.agent.skillfiles.places import Origin
from tools.core.errors import InvalidArgumentsError

MAIN = "SKILL.md"
SCHEME = "skill://"
MOST_FILES = 512
MOST_BYTES = 16 * 1024 * 1024
"""What a skill may have, all its files together (SEP-2640)."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill.

    Attributes:
        path: Relative to the skill, with `/`.
        size: Its bytes.
    """

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class ManifestFile(SkillFile):
    """A file of a skill whose content is known.

    Attributes:
        digest: SHA-256 of its bytes: `sha256:` and hexadecimal digits.
    """

    digest: str


@dataclass(frozen=True, kw_only=True)
class Skill(ABC):
    """A skill, as its SKILL.md was when it was looked at.

    Attributes:
        path: What it is called here: its name, with a label before it where another is called so.
        name: Its own name, `[a-z0-9-]{1,64}`.
        description: What it does and when it helps, in one line.
        frontmatter: All that its SKILL.md says of it, verbatim, as JSON has it.
        place: Where it is from.
        problems: What is wrong with it, each as a sentence.
    """

    path: str
    name: str
    description: str
    frontmatter: Mapping[str, Any]
    place: Origin
    problems: tuple[str, ...] = ()

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
        return not self._says("disable-model-invocation", "true")

    @property
    def is_for_people(self) -> bool:
        """Whether a person may start it: some are knowledge, and no task."""
        return not self._says("user-invocable", "false")

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
        """What it knows about and when it helps, in words."""
        found = self._found("knowledge_domains", "knowledge-domains")
        texts = found if isinstance(found, list) else str(found or "").split(",")
        texts = [*texts, self._found("when_to_use", "when-to-use")]
        return tuple(each.strip() for each in texts if isinstance(each, str) and each.strip())

    @property
    def where(self) -> str:
        """The directory on this machine that its files are in; empty where they are elsewhere."""
        return ""

    @abstractmethod
    def listed(self) -> tuple[list[SkillFile], bool]:
        """Its files, SKILL.md first, and whether there are more than a skill may have."""

    @abstractmethod
    def directories(self) -> frozenset[str]:
        """Its subdirectories, relative to it."""

    @abstractmethod
    def manifest(self) -> tuple[ManifestFile, ...]:
        """Each of its files, SKILL.md first."""

    @abstractmethod
    def nested(self) -> tuple[Skill, ...]:
        """The skills in its subdirectories, whose files are its own too."""

    @abstractmethod
    def data(self, path: str) -> bytes:
        """The bytes of one of its files; blocks, in a worker thread."""

    def measured(self, path: str) -> tuple[int, str]:
        """The size of one of its files, and its SHA-256 as `sha256:` and hexadecimal digits."""
        data = self.data(path)
        return len(data), f"sha256:{hashlib.sha256(data).hexdigest()}"

    def text(self, path: str) -> str:
        r"""The text of one of its files, whose lines end with \n; blocks, in a worker thread."""
        return text_of(self.data(path), path)

    def _says(self, key: str, word: str) -> bool:
        """Whether a field is a truth value, in quotes or not."""
        return str(self.frontmatter.get(key)).casefold() == word

    def _names(self, *keys: str) -> tuple[str, ...]:
        return names_of(self._found(*keys))

    def _found(self, *keys: str) -> object:
        """A field, at the top or in `metadata`, where the specification has room for more."""
        metadata = self.frontmatter.get("metadata")
        tables = (self.frontmatter, metadata if isinstance(metadata, dict) else {})
        return next((table[key] for table in tables for key in keys if key in table), None)


def text_of(data: bytes, path: str) -> str:
    r"""The text of a file, whose lines end with \n."""
    try:
        text = decode(data).text
    except UnreadableDocumentError as error:
        raise InvalidArgumentsError(
            f"{path!r} is not text ({len(data):,} bytes).",
            next_actions=["Use the file where it lies, or load another one."],
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")
