"""Vetting: which tools of other servers a person has to look at before a model does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import mcp_types as types

from server.upstream.safety.conversion import readable
from server.upstream.safety.deception import Finding, findings, mentions
from server.upstream.safety.judging import Judged, judge
from server.upstream.safety.neighbours import OURS, Neighbours
from server.upstream.safety.pins import Definition
from storage.catalog.pins import Pins


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

    def judge(self, server: str, *, trusts: bool) -> list[Judged[types.Tool]]:
        """The tools of a server, each with what keeps it from being used.

        Args:
            server: Its name in the settings.
            trusts: Whether what has no pin gets one, unless there is something wrong with it.
        """
        with self._turn:
            offered = {
                name: Judged(
                    each.tool, each.definition, (*each.findings, *self._near(server, each))
                )
                for name, each in self._vetted[server].items()
            }
        return judge(server, offered, self._pins, trusts=trusts)

    def _near(self, server: str, vetted: _Vetted) -> Iterable[Finding]:
        return self._neighbours.shadowing(server, vetted.tool.name, vetted.mentions)


def _speak_of(names: frozenset[str], vetted: Mapping[str, _Vetted]) -> bool:
    """Whether one of the tools speaks of one of these names, or may look like one."""
    if not names:
        return False
    return any(
        not names.isdisjoint(each.mentions) or not name.isascii() for name, each in vetted.items()
    )
