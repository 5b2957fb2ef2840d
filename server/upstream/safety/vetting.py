"""Vetting: which tools of other servers a person has to look at before a model does."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import mcp_types as types

from server.upstream.safety.conversion import readable
from server.upstream.safety.deception import Finding, findings, mentions
from server.upstream.safety.neighbours import OURS, Neighbours
from server.upstream.safety.pins import Definition
from storage.catalog.pins import Pin, Pins
from storage.errors import StorageError

__all__ = ["CHANGED", "Judged", "Vetting"]

CHANGED = "its definition changed after it was accepted"
UNKNOWN = "what was accepted of it cannot be read now"
UNPINNED = "its definition cannot be pinned now"

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class _Vetted:
    """A tool, and what its definition says by itself."""

    given: types.Tool
    tool: types.Tool
    definition: Definition
    findings: tuple[Finding, ...]
    mentions: Mapping[str, str]

    @classmethod
    def of(cls, given: types.Tool) -> _Vetted:
        tool = readable(given)
        definition = Definition.of(tool)
        return cls(given, tool, definition, tuple(findings(tool, definition.text)), mentions(tool))


@dataclass(frozen=True, slots=True)
class Judged:
    """A tool, and whether it may be used.

    Attributes:
        tool: The tool, as it is handed on.
        definition: What a pin of it is over.
        pin: What was accepted of it; None if nothing was.
        findings: Why a person has to look at it; empty where none has to.
    """

    tool: types.Tool
    definition: Definition
    pin: Pin | None
    findings: tuple[Finding, ...]

    @property
    def barred(self) -> str:
        """The findings as the rest of a sentence, in words of ours; empty where there are none."""
        return "; ".join(dict.fromkeys(each.reason for each in self.findings))

    @property
    def is_changed(self) -> bool:
        """Whether another definition was accepted."""
        return self.pin is not None and self.pin.sha256 != self.definition.sha256


class Vetting:
    """Compares what servers list with what was accepted; threads may share it.

    The first definition of a tool is accepted unless there is something wrong with it, also where
    its server was known before: servers gain tools with every release, and whoever is asked about
    each of them soon says yes to all. A new tool has no trust that it could betray, and its
    definition is looked through like any other. What is trusted is the definition that was
    accepted: one that changes is for a person to look at. What was accepted unseen is looked
    through again when other servers come, what a person accepted is not.

    Args:
        servers: The names of all servers in the settings.
        pins: What was accepted.
    """

    def __init__(self, servers: Iterable[str], pins: Pins) -> None:
        self._pins = pins
        self._neighbours = Neighbours(servers)
        self._vetted: dict[str, dict[str, _Vetted]] = {}
        self._turn = Lock()

    def put(self, server: str, tools: Sequence[types.Tool], ours: Iterable[str]) -> set[str]:
        """Takes note of what a server lists now.

        Args:
            server: Its name in the settings.
            tools: Its tools; of two with one name the first counts.
            ours: The names of the tools that are of no other server.

        Returns:
            The servers that have to be judged again, this one among them.
        """
        with self._turn:
            before = self._vetted.get(server, {})
            now: dict[str, _Vetted] = {}
            for tool in tools:
                known = before.get(tool.name)
                same = known is not None and known.given == tool
                now.setdefault(tool.name, known if known and same else _Vetted.of(tool))
            self._vetted[server] = now
            changed = self._neighbours.put(OURS, ours) | self._neighbours.put(server, now)
            return {server} | {
                other for other, vetted in self._vetted.items() if _speak_of(changed, vetted)
            }

    def judge(self, server: str, *, trusts: bool) -> list[Judged]:
        """The tools of a server, each with what keeps it from being used.

        Args:
            server: Its name in the settings.
            trusts: Whether what has no pin gets one, unless there is something wrong with it.
        """
        with self._turn:
            vetted = self._vetted[server]
            try:
                pins = self._pins.of(server)
            except StorageError as error:
                _logger.warning("The pins of %r cannot be read: %s", server, error)
                return [_with(_judged(each, None, ()), UNKNOWN) for each in vetted.values()]
            judged = {
                name: self._judged(server, each, pins.get(name)) for name, each in vetted.items()
            }
        return list((self._trust(server, judged) if trusts else judged).values())

    def _judged(self, server: str, vetted: _Vetted, pin: Pin | None) -> Judged:
        is_changed = pin is not None and pin.sha256 != vetted.definition.sha256
        if pin is not None and pin.approved and not is_changed:
            return _judged(vetted, pin, ())
        name = vetted.tool.name
        shadowing = self._neighbours.shadowing(server, name, vetted.mentions)
        found = _judged(vetted, pin, (*vetted.findings, *shadowing))
        return _with(found, CHANGED) if is_changed else found

    def _trust(self, server: str, judged: dict[str, Judged]) -> dict[str, Judged]:
        """The same, where what is new and has nothing wrong is pinned, or was just now."""
        new = {
            name: (each.definition.sha256, each.definition.text)
            for name, each in judged.items()
            if each.pin is None and not each.findings
        }
        if not new:
            return judged
        try:
            pins = self._pins.trust(server, new)
        except StorageError as error:
            _logger.warning("Tools of %r cannot be pinned: %s", server, error)
            return judged | {name: _with(judged[name], UNPINNED) for name in new}
        pinned = {name: replace(judged[name], pin=pin) for name, pin in pins.items()}
        return judged | {
            name: _with(each, CHANGED) if each.is_changed else each for name, each in pinned.items()
        }


def _judged(vetted: _Vetted, pin: Pin | None, found: tuple[Finding, ...]) -> Judged:
    return Judged(vetted.tool, vetted.definition, pin, found)


def _with(judged: Judged, reason: str) -> Judged:
    return replace(judged, findings=(Finding(reason, ""), *judged.findings))


def _speak_of(names: frozenset[str], vetted: Mapping[str, _Vetted]) -> bool:
    """Whether one of the tools speaks of one of these names, or may look like one."""
    if not names:
        return False
    return any(
        not names.isdisjoint(each.mentions) or not name.isascii() for name, each in vetted.items()
    )
