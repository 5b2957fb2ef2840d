"""Parses the front matter of a SKILL.md: YAML between lines of three hyphens, read as JSON values.

Real skills are often malformed: colons in unquoted text, or no front matter at all. The parser
reports such problems and still reads the skill.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storage.reading.yamltext import read_yaml

MOST_CHARACTERS = 65_536
"""Limit on front matter; if it has not ended by then, it does not count as front matter."""

MOST_LEVELS = 16
DESCRIPTION_CHARACTERS = 1_024
"""Limit on a description; the rest is cut."""

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
            problems.append(f"Its front matter is not plain YAML: {_error_text(error)}.")
            try:
                found = read_yaml(_quote(fields), plain=MOST_LEVELS)
            except ValueError:
                found = {}
        if not isinstance(found, dict):
            return cls(body=body, problems=("Its front matter is not a mapping of fields.",))
        if not _is_json(found):
            return cls(
                body=body, problems=("Its front matter has values that JSON cannot represent.",)
            )
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


def _quote(fields: str) -> str:
    """Quotes the unquoted values that contain a colon."""
    return "\n".join(map(_quote_line, fields.split("\n")))


def _quote_line(line: str) -> str:
    found = _FIELD.match(line)
    if found is None or ":" not in found["text"]:
        return line
    return f"{found['key']}: {json.dumps(found['text'])}"


def _is_json(fields: dict[str, Any]) -> bool:
    """Returns whether JSON can represent it: no infinity, NaN or unpaired surrogates."""
    try:
        json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


def _error_text(error: ValueError) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")
