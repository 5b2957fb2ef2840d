"""Pins: approved definitions, and whether what a server now defines may be used."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import unified_diff
from hashlib import sha256
from typing import Any, Generic, TypeVar

import mcp_types as types

from server.upstream.safety.conversion import is_texts
from server.upstream.safety.deception import Finding
from storage.catalog.catalog import Pin, Pins
from storage.errors import StorageError

CHANGED = "its definition changed after it was accepted"
UNKNOWN = "what was accepted of it cannot be read now"
UNPINNED = "its definition cannot be pinned now"

_PINNED = {"name", "title", "description", "input_schema", "output_schema", "annotations"}

_SETS = frozenset({"enum", "required", "type"})
"""Lists of JSON Schema without an order; some servers build them from hash sets, so that their
order changes with each start."""


ItemT = TypeVar("ItemT")

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a tool or a skill in canonical form, with its hash.

    Icons, `_meta` and `execution` are not part of it: they reach no model and change no call, while
    the addresses and versions in them change on their own.
    """

    text: str
    sha256: str

    @classmethod
    def of(cls, tool: types.Tool) -> Definition:
        """Returns the definition of a tool."""
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
        key: sorted(each) if key in _SETS and is_texts(each) else _sort_sets(each)
        for key, each in value.items()
    }


@dataclass(frozen=True, slots=True)
class Judged(Generic[ItemT]):
    """A tool or a skill of a server, with reasons against its use."""

    item: ItemT
    definition: Definition
    findings: tuple[Finding, ...]  # why it needs review
    pin: Pin | None = None  # the approved definition

    @property
    def quarantine_reason(self) -> str:
        """The findings as the rest of a sentence in our own words; empty without findings."""
        return "; ".join(dict.fromkeys(each.reason for each in self.findings))

    @property
    def is_changed(self) -> bool:
        """Whether a different definition was approved."""
        return self.pin is not None and self.pin.sha256 != self.definition.sha256


def judge(
    server: str, offered: Mapping[str, Judged[ItemT]], pins: Pins, *, trusts: bool
) -> list[Judged[ItemT]]:
    """Compares what a server offers with the approved definitions; blocks.

    Items are given by the server's own names, with findings independent of approval. If the server
    is trusted, new items without findings are pinned.
    """
    try:
        known = pins.of(server)
    except StorageError as error:
        _logger.warning("The pins of %r cannot be read: %s", server, error)
        return [_with(each, UNKNOWN) for each in offered.values()]
    judged = {name: _compare(known.get(name), each) for name, each in offered.items()}
    return list((_pin_new(server, judged, pins) if trusts else judged).values())


def _compare(pin: Pin | None, offered: Judged[ItemT]) -> Judged[ItemT]:
    judged = replace(offered, pin=pin)
    if judged.is_changed:
        return _with(judged, CHANGED)
    return replace(judged, findings=()) if pin is not None and pin.approved else judged


def _pin_new(
    server: str, judged: Mapping[str, Judged[ItemT]], pins: Pins
) -> Mapping[str, Judged[ItemT]]:
    """Pins new items without findings, unless another process just did."""
    new = {
        name: (each.definition.sha256, each.definition.text)
        for name, each in judged.items()
        if each.pin is None and not each.findings
    }
    if not new:
        return judged
    try:
        pinned = pins.trust(server, new)
    except StorageError as error:
        _logger.warning("What %r offers cannot be pinned: %s", server, error)
        return {**judged, **{name: _with(judged[name], UNPINNED) for name in new}}
    return {**judged, **{name: _compare(pin, judged[name]) for name, pin in pinned.items()}}


def _with(judged: Judged[ItemT], reason: str) -> Judged[ItemT]:
    return replace(judged, findings=(Finding(reason, ""), *judged.findings))
