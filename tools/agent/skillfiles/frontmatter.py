"""The front matter of a SKILL.md: YAML between lines of three hyphens, read as JSON has it.

What skills in the wild have is read: a colon in a text without quotes, no front matter at all. What
is wrong is told, and is no reason to leave a skill out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storage.reading.yamltext import read_yaml

MOST_CHARACTERS = 65_536
"""Of front matter; what has no end by then is none."""

MOST_LEVELS = 16
DESCRIPTION_CHARACTERS = 1_024
"""What a description may have; of one that has more, the beginning counts."""

_BLOCK = re.compile(r"---[ \t]*\n(?P<yaml>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^(?P<key>[A-Za-z_][\w-]*):[ \t]+(?P<text>[^\s\"'|>\[{&*!#%@`].*?)[ \t]*$")
_NAMES = re.compile(r"[^\s,()]+(?:\([^)]*\))?")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a SKILL.md says of its skill, and its instructions.

    Attributes:
        fields: Every field, verbatim, as JSON has it.
        body: The text below.
        problems: What is wrong with it, each as a sentence.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> FrontMatter:
        r"""Takes a SKILL.md apart, whose lines end with \n; it never fails."""
        block = _BLOCK.match(text, 0, MOST_CHARACTERS)
        if block is None:
            is_open = text.startswith("---")
            problem = "Its front matter has no end." if is_open else "It has no front matter."
            return cls(body=text, problems=(problem,))
        body, fields, problems = text[block.end() :], block["yaml"], []
        try:
            found = read_yaml(fields, plain=MOST_LEVELS)
        except ValueError as error:
            problems.append(f"Its front matter is no plain YAML: {_told(error)}.")
            try:
                found = read_yaml(_quoted(fields), plain=MOST_LEVELS)
            except ValueError:
                found = {}
        if not isinstance(found, dict):
            return cls(body=body, problems=("Its front matter is no table of fields.",))
        if not _is_json(found):
            return cls(body=body, problems=("Its front matter says what JSON cannot.",))
        return cls(found, body, tuple(problems))

    def text(self, key: str) -> str:
        """A field that is a text, in one line; empty where it is none."""
        found = self.fields.get(key)
        return " ".join(found.split()) if isinstance(found, str) else ""

    @property
    def description(self) -> str:
        """What it says of itself, or the first paragraph of the instructions; not all of either."""
        if said := self.text("description"):
            return said[:DESCRIPTION_CHARACTERS]
        paragraphs = (" ".join(each.split()) for each in self.body[:MOST_CHARACTERS].split("\n\n"))
        first = next(
            (each for each in paragraphs if each and not each.startswith(("#", "---"))), ""
        )
        return first[:DESCRIPTION_CHARACTERS]


def names_of(value: object) -> tuple[str, ...]:
    """The names in a field: a list of them, or a text with commas or spaces between them.

    What stands in parentheses behind a name belongs to it: `Bash(git add:*)`.
    """
    texts = value if isinstance(value, list) else [value]
    return tuple(name for text in texts if isinstance(text, str) for name in _NAMES.findall(text))


def _quoted(fields: str) -> str:
    """The same, with quotes around what has a colon in it and none."""
    return "\n".join(map(_quoted_line, fields.split("\n")))


def _quoted_line(line: str) -> str:
    found = _FIELD.match(line)
    if found is None or ":" not in found["text"]:
        return line
    return f"{found['key']}: {json.dumps(found['text'])}"


def _is_json(fields: dict[str, Any]) -> bool:
    """Whether JSON can say it: it has no number without an end, and no half of a character."""
    try:
        json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


def _told(error: ValueError) -> str:
    """What is wrong, and in which line of the front matter."""
    return " ".join(str(error).split())[:200].rstrip(".")
