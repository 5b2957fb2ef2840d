"""Pins: definitions of what a model or a policy relies on when calling a tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from typing import Any

import mcp_types as types

_PINNED = {"name", "title", "description", "input_schema", "output_schema", "annotations"}

_SETS = frozenset({"enum", "required", "type"})
"""Lists of JSON Schema without an order; some servers build them from hash sets, so that their
order changes with each start."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a tool or a skill in canonical form, with its hash.

    Icons, `_meta` and `execution` are not part of it: they reach no model and change no call, while
    the addresses and versions in them change on their own.

    Attributes:
        text: Canonical JSON: sorted keys, no spaces, ASCII.
        sha256: Hexadecimal hash of the text.
    """

    text: str
    sha256: str

    @classmethod
    def of(cls, tool: types.Tool) -> Definition:
        """Returns the definition of a tool.

        Args:
            tool: The tool from `conversion.readable`: what is used is what is pinned.
        """
        dumped = tool.model_dump(mode="json", by_alias=True, include=_PINNED, exclude_none=True)
        return cls.over(_sort_sets(dumped))

    @classmethod
    def over(cls, content: Mapping[str, Any]) -> Definition:
        """Returns the definition with this content."""
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return cls(text, sha256(text.encode()).hexdigest())

    @property
    def content(self) -> Mapping[str, Any]:
        """The parsed text."""
        content: Mapping[str, Any] = json.loads(self.text)
        return content


def lines(content: Mapping[str, Any]) -> list[str]:
    """Formats a definition, one fact per line: `inputSchema.properties.path.type: "string"`.

    Multi-line texts are split into lines, so that differences are precise.
    """
    return list(_lines(content, ""))


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Returns changed lines of a definition: "-" for removed ones, "+" for new ones."""
    changed = unified_diff(lines(before), lines(after), lineterm="", n=0)
    return [line for line in changed if not line.startswith(("---", "+++", "@@"))]


def _lines(value: object, where: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _lines(each, f"{where}.{key}" if where else key)
    elif isinstance(value, str) and "\n" in value:
        for number, line in enumerate(value.split("\n"), start=1):
            yield f"{where}, line {number}: {line}"
    else:
        yield f"{where}: {json.dumps(value, ensure_ascii=False)}"


def _sort_sets(value: Any) -> Any:  # noqa: ANN401  # any part of a definition
    if isinstance(value, list):
        return [_sort_sets(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: sorted(each) if key in _SETS and _is_texts(each) else _sort_sets(each)
        for key, each in value.items()
    }


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
