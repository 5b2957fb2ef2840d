"""Vetting: which tools of other servers a person has to look at before a model does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import mcp_types as types

from server.upstream.safety.conversion import readable
from server.upstream.safety.deception import Finding, findings, mentions
from server.upstream.safety.judging import Judged, judge
from server.upstream.safety.pins import Definition
from storage.catalog.pins import Pins
from tools.conversion.confusables import skeleton
from tools.conversion.naming import SEPARATOR, exposed_name

OURS = ""
"""Stands for this server among the others."""

_CLIENTS = "mcp"
"""What clients put before the names of all servers' tools."""

_NAME_OF_OURS = "toolcrib"
"""What they put before those of ours, with or without the other."""


class Neighbours:
    """Which server has a tool of which name.

    Args:
        servers: All servers that the settings name.
    """

    def __init__(self, servers: Iterable[str]) -> None:
        self._servers = frozenset(servers)
        self._names: dict[str, frozenset[str]] = {}
        self._owners: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._alike: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, server: str, names: Iterable[str]) -> frozenset[str]:
        """Says what a server calls its tools now.

        Args:
            server: Its name in the settings, or `OURS`.
            names: Its own names.

        Returns:
            The names, in small letters, that came or went.
        """
        shown: dict[str, str] = {}
        for name in names:
            exposed = exposed_name(server, name) if server else name
            shown[name.casefold()] = shown[exposed.casefold()] = exposed
        before, now = self._names.get(server, frozenset()), frozenset(shown)
        for name in before - now:
            del self._owners[name][server]
            if not self._owners[name]:
                del self._owners[name]
                self._alike[skeleton(name)].discard(name)
        for name, exposed in shown.items():
            self._owners[name][server] = exposed
            self._alike[skeleton(name)].add(name)
        self._names[server] = now
        return before ^ now

    def shadowing(self, server: str, name: str, mentioned: Mapping[str, str]) -> Iterator[Finding]:
        """Where a tool passes for one that its server does not have, or speaks of one.

        Args:
            server: Its server.
            name: What that calls it.
            mentioned: The words that may name a tool, and what they stand in.
        """
        claimed = self._server_in(name.casefold())
        if claimed is not None and claimed != server:
            yield Finding(f"its name is that of a tool of {claimed or 'this server'}", name)
        if (imitated := self._imitated(server, name)) is not None:
            yield Finding(f"its name looks like {imitated}", name)
        for word, shown in mentioned.items():
            if (meant := self._meant(server, word)) is not None:
                yield Finding(f"it mentions {meant}, which its server does not have", shown)

    def _meant(self, server: str, word: str) -> str | None:
        """The tool, or server, of others that a word names; None if it names none."""
        owners = self._owners.get(word)
        if owners is not None:
            return None if server in owners else min(owners.values())
        other = self._server_in(word)
        return None if other in {None, server} else f"tools of {other or 'this server'}"

    def _server_in(self, word: str) -> str | None:
        """The server whose tools have names that begin so."""
        first, *rest = word.split(SEPARATOR)
        if first == _CLIENTS and len(rest) > 1:
            first = rest[0]
        if rest and first == _NAME_OF_OURS:
            return OURS
        return first if rest and first in self._servers else None

    def _imitated(self, server: str, name: str) -> str | None:
        """The tool of others whose name this one looks like, without being it."""
        folded = name.casefold()
        looks = skeleton(name)
        if looks == folded:
            return None
        for each in sorted(self._alike.get(looks, ())):
            if each != folded and server not in self._owners[each]:
                return min(self._owners[each].values())
        return None


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
