"""Judges whether what a server defines may be used, given the approved definitions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from server.upstream.safety.deception import Finding
from server.upstream.safety.pins import Definition
from storage.catalog.catalog import Pin, Pins
from storage.errors import StorageError

CHANGED = "its definition changed after it was accepted"
UNKNOWN = "what was accepted of it cannot be read now"
UNPINNED = "its definition cannot be pinned now"

ItemT = TypeVar("ItemT")

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Judged(Generic[ItemT]):
    """A tool or a skill of a server, with reasons against its use.

    Attributes:
        item: The tool or skill.
        definition: Its definition, as pinned.
        findings: Why it needs review; empty if it does not.
        pin: The approved definition; None if there is none.
    """

    item: ItemT
    definition: Definition
    findings: tuple[Finding, ...]
    pin: Pin | None = None

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

    Args:
        server: The name of the server in the settings.
        offered: Items by the server's own names, with findings independent of approval.
        pins: Approved definitions.
        trusts: Whether to pin new items that have no findings.
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
    return {
        **judged,
        **{name: _compare(pin, judged[name]) for name, pin in pinned.items()},
    }


def _with(judged: Judged[ItemT], reason: str) -> Judged[ItemT]:
    return replace(judged, findings=(Finding(reason, ""), *judged.findings))
