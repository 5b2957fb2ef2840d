"""Judging: whether what a server defines may be used, by what was accepted of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from server.upstream.safety.deception import Finding
from server.upstream.safety.pins import Definition
from storage.catalog.pins import Pin, Pins
from storage.errors import StorageError

CHANGED = "its definition changed after it was accepted"
UNKNOWN = "what was accepted of it cannot be read now"
UNPINNED = "its definition cannot be pinned now"

ItemT = TypeVar("ItemT")

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Judged(Generic[ItemT]):
    """A tool or a skill of a server, and whether it may be used.

    Attributes:
        item: It, as it is handed on.
        definition: What a pin of it is over.
        findings: Why a person has to look at it; empty where none has to.
        pin: What was accepted of it; None if nothing was.
    """

    item: ItemT
    definition: Definition
    findings: tuple[Finding, ...]
    pin: Pin | None = None

    @property
    def barred(self) -> str:
        """The findings as the rest of a sentence, in words of ours; empty where there are none."""
        return "; ".join(dict.fromkeys(each.reason for each in self.findings))

    @property
    def is_changed(self) -> bool:
        """Whether another definition was accepted."""
        return self.pin is not None and self.pin.sha256 != self.definition.sha256


def judge(
    server: str, offered: Mapping[str, Judged[ItemT]], pins: Pins, *, trusts: bool
) -> list[Judged[ItemT]]:
    """Holds what a server offers against what was accepted of it; blocks.

    Args:
        server: Its name in the settings.
        offered: By what the server calls each, with what is wrong with it whatever was accepted.
        pins: What was accepted.
        trusts: Whether what has no pin gets one, unless there is something wrong with it.
    """
    try:
        known = pins.of(server)
    except StorageError as error:
        _logger.warning("The pins of %r cannot be read: %s", server, error)
        return [_with(each, UNKNOWN) for each in offered.values()]
    judged = {name: _held_against(known.get(name), each) for name, each in offered.items()}
    return list((_trusted(server, judged, pins) if trusts else judged).values())


def _held_against(pin: Pin | None, offered: Judged[ItemT]) -> Judged[ItemT]:
    judged = replace(offered, pin=pin)
    if judged.is_changed:
        return _with(judged, CHANGED)
    return replace(judged, findings=()) if pin is not None and pin.approved else judged


def _trusted(
    server: str, judged: Mapping[str, Judged[ItemT]], pins: Pins
) -> Mapping[str, Judged[ItemT]]:
    """The same, where what is new and has nothing wrong is pinned, or was just now."""
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
        **{name: _held_against(pin, judged[name]) for name, pin in pinned.items()},
    }


def _with(judged: Judged[ItemT], reason: str) -> Judged[ItemT]:
    return replace(judged, findings=(Finding(reason, ""), *judged.findings))
