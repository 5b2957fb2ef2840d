"""One skill: the metadata in its SKILL.md, and its other files."""

from __future__ import annotations

import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from storage.errors import UnreadableDocumentError
from storage.reading.decode import decode
from storage.reading.yamltext import read_yaml
from tools.agent.skillfiles.places import Origin
from tools.core.errors import InvalidArgumentsError

MOST_CHARACTERS = 65_536
"""Limit on front matter; if it has not ended by then, it does not count as front matter."""

MOST_LEVELS = 16
DESCRIPTION_CHARACTERS = 1_024  # limit on a description; the rest is cut
_BLOCK = re.compile(r"---[ \t]*\n(?P<yaml>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^(?P<key>[A-Za-z_][\w-]*):[ \t]+(?P<text>[^\s\"'|>\[{&*!#%@`].*?)[ \t]*$")
_NAMES = re.compile(r"[^\s,()]+(?:\([^)]*\))?")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The metadata and instructions of a SKILL.md."""

    fields: Mapping[str, Any] = field(default_factory=dict)  # every field, verbatim, as JSON values
    body: str = ""  # the text after the front matter
    problems: tuple[str, ...] = ()  # what is wrong with it, one sentence each

    @classmethod
    def of(cls, text: str) -> FrontMatter:
        r"""Parses a SKILL.md whose lines end with \n; never fails."""
        block = _BLOCK.match(text, 0, MOST_CHARACTERS)
        if block is None:
            is_open = text.startswith("---")
            problem = "Its front matter has no end." if is_open else "It has no front matter."
            return cls(body=text, problems=(problem,))
        body, fields, problems = text[block.end() :], block["yaml"], []
        try:
            found = read_yaml(fields, plain=MOST_LEVELS)
        except ValueError as error:
            why = " ".join(str(error).split())[:200].rstrip(".")
            problems.append(f"Its front matter is not plain YAML: {why}.")
            quoted = "\n".join(map(_quote_line, fields.split("\n")))
            try:
                found = read_yaml(quoted, plain=MOST_LEVELS)
            except ValueError:
                found = {}
        if not isinstance(found, dict):
            return cls(body=body, problems=("Its front matter is not a mapping of fields.",))
        try:  # no infinity, NaN or unpaired surrogates
            json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
        except ValueError:
            problem = "Its front matter has values that JSON cannot represent."
            return cls(body=body, problems=(problem,))
        return cls(found, body, tuple(problems))

    def text(self, key: str) -> str:
        """Returns a text field as one line; empty if it is not a text."""
        found = self.fields.get(key)
        return " ".join(found.split()) if isinstance(found, str) else ""

    @property
    def description(self) -> str:
        """Returns its description field or the first paragraph of the instructions, shortened."""
        if said := self.text("description"):
            return said[:DESCRIPTION_CHARACTERS]
        paragraphs = (" ".join(each.split()) for each in self.body[:MOST_CHARACTERS].split("\n\n"))
        first = next(
            (each for each in paragraphs if each and not each.startswith(("#", "---"))), ""
        )
        return first[:DESCRIPTION_CHARACTERS]


def names_of(value: object) -> tuple[str, ...]:
    """Splits a field into names: a list, or a text separated by commas or spaces.

    A suffix in parentheses belongs to its name: `Bash(git add:*)`.
    """
    texts = value if isinstance(value, list) else [value]
    return tuple(name for text in texts if isinstance(text, str) for name in _NAMES.findall(text))


def _quote_line(line: str) -> str:
    """Quotes an unquoted value that contains a colon."""
    found = _FIELD.match(line)
    if found is None or ":" not in found["text"]:
        return line
    return f"{found['key']}: {json.dumps(found['text'])}"


MAIN = "SKILL.md"
SCHEME = "skill://"
MOST_FILES = 512
MOST_BYTES = 16 * 1024 * 1024  # limit on the total size of a skill's files (SEP-2640)


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill."""

    path: str  # relative to the skill, with `/`
    size: int


@dataclass(frozen=True, slots=True)
class ManifestFile(SkillFile):
    """A file of a skill, with its digest."""

    digest: str  # SHA-256 of its bytes: `sha256:` and hexadecimal digits


@dataclass(frozen=True, kw_only=True)
class Skill(ABC):
    """A skill, as its SKILL.md was when last read."""

    path: str  # its unique path: its name, after a label if another skill has that name
    name: str  # its own name, `[a-z0-9-]{1,64}`
    description: str  # what it does and when it helps, in one line
    frontmatter: Mapping[str, Any]  # all metadata in its SKILL.md, verbatim, as JSON values
    place: Origin
    problems: tuple[str, ...] = ()  # what is wrong with it, one sentence each

    def uri(self, path: str = MAIN) -> str:
        """Returns the address of one of its files (SEP-2640)."""
        return f"{SCHEME}{self.path}/{quote(os.fsencode(path))}"

    @property
    def is_conforming(self) -> bool:
        """True if its SKILL.md follows the specification, so that every host accepts it."""
        return not self.problems

    @property
    def is_for_models(self) -> bool:
        """True if a model may load it on its own."""
        return not self._says("disable-model-invocation", "true")

    @property
    def is_for_people(self) -> bool:
        """True if a user may start it: some skills are knowledge, not tasks."""
        return not self._says("user-invocable", "false")

    @property
    def required_tools(self) -> tuple[str, ...]:
        """The tools it cannot work without."""
        return self._names("required_tools", "required-tools")

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """The tools its author expects it to use, by their names in other clients."""
        return self._names("allowed-tools", "allowed_tools")

    @property
    def domains(self) -> tuple[str, ...]:
        """Its topics and when to use it, in plain words."""
        found = self._field("knowledge_domains", "knowledge-domains")
        texts = found if isinstance(found, list) else str(found or "").split(",")
        texts = [*texts, self._field("when_to_use", "when-to-use")]
        return tuple(each.strip() for each in texts if isinstance(each, str) and each.strip())

    @property
    def where(self) -> str:
        """Its local directory; empty if it is not on this machine."""
        return ""

    @abstractmethod
    def listed(self) -> tuple[list[SkillFile], bool]:
        """Lists its files, SKILL.md first, and whether a size limit was exceeded."""

    @abstractmethod
    def directories(self) -> frozenset[str]:
        """Returns its subdirectories, relative to it."""

    @abstractmethod
    def manifest(self) -> tuple[ManifestFile, ...]:
        """Returns its files with digests, SKILL.md first."""

    @abstractmethod
    def nested(self) -> tuple[Skill, ...]:
        """Returns the skills in its subdirectories, whose files also belong to it."""

    @abstractmethod
    def data(self, path: str) -> bytes:
        """Returns the bytes of one of its files; blocks, so call it in a worker thread."""

    def measured(self, path: str) -> tuple[int, str]:
        """Returns a file's size and its SHA-256 as `sha256:` and hexadecimal digits."""
        data = self.data(path)
        return len(data), f"sha256:{hashlib.sha256(data).hexdigest()}"

    def text(self, path: str) -> str:
        r"""Returns a file's text with \n as line ends; blocks, so call it in a worker thread."""
        return text_of(self.data(path), path)

    def _says(self, key: str, word: str) -> bool:
        """Returns whether a boolean field has this value, quoted or not."""
        return str(self.frontmatter.get(key)).casefold() == word

    def _names(self, *keys: str) -> tuple[str, ...]:
        return names_of(self._field(*keys))

    def _field(self, *keys: str) -> object:
        """Returns a field of the top level or `metadata`, where the specification puts extras."""
        metadata = self.frontmatter.get("metadata")
        tables = (self.frontmatter, metadata if isinstance(metadata, dict) else {})
        return next((table[key] for table in tables for key in keys if key in table), None)


def text_of(data: bytes, path: str) -> str:
    r"""Decodes a file to text with lines that end with \n."""
    try:
        text = decode(data).text
    except UnreadableDocumentError as error:
        raise InvalidArgumentsError(
            f"{path!r} is not text ({len(data):,} bytes).",
            next_actions=["Use the file where it lies, or load another one."],
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")
