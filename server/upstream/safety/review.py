"""Review: selects tools of other servers that need review before a model sees them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import mcp_types as types

from server.upstream.safety.conversion import readable
from server.upstream.safety.deception import Finding, findings, mentions
from server.upstream.safety.pinning import Definition, Judged, judge
from storage.catalog.catalog import Pins
from tools.conversion.confusables import skeleton
from tools.conversion.naming import SEPARATOR, exposed_name

OURS = ""
"""The name of this server among the others."""

_CLIENTS = "mcp"
"""The prefix that clients put before the names of all servers' tools."""

_NAME_OF_OURS = "toolcrib"
"""The prefix that they put before our own, with or without the other."""


class NameCollisions:
    """Maps names of tools to servers."""

    def __init__(self, servers: Iterable[str]) -> None:
        self._servers = {*servers}
        self._by_server: dict[str, frozenset[str]] = {}
        self._owners: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._alike: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, server: str, names: Iterable[str]) -> frozenset[str]:
        """Updates a server's own names of tools; returns changed names in lower case."""
        if server:
            self._servers.add(server)
        shown: dict[str, str] = {}
        for name in names:
            exposed = exposed_name(server, name) if server else name
            shown[name.casefold()] = shown[exposed.casefold()] = exposed
        before, now = self._by_server.get(server, frozenset()), frozenset(shown)
        for name in before - now:
            del self._owners[name][server]
            if not self._owners[name]:
                del self._owners[name]
                self._alike[skeleton(name)].discard(name)
        for name, exposed in shown.items():
            self._owners[name][server] = exposed
            self._alike[skeleton(name)].add(name)
        self._by_server[server] = now
        return before ^ now

    def shadowing(self, server: str, name: str, mentioned: Mapping[str, str]) -> Iterator[Finding]:
        """Finds where a tool imitates or mentions one that its server does not have."""
        claimed = self._server_in(name.casefold())
        if claimed is not None and claimed != server:
            yield Finding(f"its name is that of a tool of {claimed or 'this server'}", name)
        if (imitated := self._find_imitated(server, name)) is not None:
            yield Finding(f"its name looks like {imitated}", name)
        for word, shown in mentioned.items():
            if (meant := self._find_meant(server, word)) is not None:
                yield Finding(f"it mentions {meant}, which its server does not have", shown)

    def _find_meant(self, server: str, word: str) -> str | None:
        """Returns the other server's tool that a word names, if any."""
        owners = self._owners.get(word)
        if owners is not None:
            return None if server in owners else min(owners.values())
        other = self._server_in(word)
        return None if other in {None, server} else f"tools of {other or 'this server'}"

    def _server_in(self, word: str) -> str | None:
        """Returns the server whose prefix a word has, if any."""
        first, *rest = word.split(SEPARATOR)
        if first == _CLIENTS and len(rest) > 1:
            first = rest[0]
        if rest and first == _NAME_OF_OURS:
            return OURS
        return first if rest and first in self._servers else None

    def _find_imitated(self, server: str, name: str) -> str | None:
        """Returns the other server's tool whose name this one imitates, if any."""
        folded = name.casefold()
        looks = skeleton(name)
        if looks == folded:
            return None
        for each in sorted(self._alike.get(looks, ())):
            if each != folded and server not in self._owners[each]:
                return min(self._owners[each].values())
        return None


@dataclass(frozen=True, slots=True)
class _Reviewed:
    """A tool with the findings of its definition alone."""

    given: types.Tool
    tool: types.Tool
    definition: Definition
    findings: tuple[Finding, ...]
    mentions: Mapping[str, str]

    @classmethod
    def of(cls, given: types.Tool) -> _Reviewed:
        tool = readable(given)
        definition = Definition.of(tool)
        return cls(given, tool, definition, tuple(findings(tool, definition.text)), mentions(tool))


class Review:
    """Compares listings with approved definitions; may be shared between threads.

    The first definition of a tool is accepted unless it has findings, even if its server was known
    before: servers gain tools with every release, and users who are asked about each soon approve
    all. A new tool has no trust to betray, and its definition is checked like any other. Trust
    applies to the accepted definition: a changed one needs review. Automatically accepted tools are
    checked again when other servers change, those approved by the user are not.
    """

    def __init__(self, servers: Iterable[str], pins: Pins) -> None:
        self._pins = pins
        self._names = NameCollisions(servers)
        self._reviewed: dict[str, dict[str, _Reviewed]] = {}
        self._turn = Lock()

    def put(self, server: str, tools: Sequence[types.Tool], ours: Iterable[str]) -> set[str]:
        """Updates a server's tools, of which the first of a name counts.

        Returns the servers that must be judged again, including this one.
        """
        with self._turn:
            before = self._reviewed.get(server, {})
            now: dict[str, _Reviewed] = {}
            for tool in tools:
                known = before.get(tool.name)
                same = known is not None and known.given == tool
                now.setdefault(tool.name, known if known and same else _Reviewed.of(tool))
            self._reviewed[server] = now
            changed = self._names.put(OURS, ours) | self._names.put(server, now)
            return {server} | {
                other for other, reviewed in self._reviewed.items() if _speak_of(changed, reviewed)
            }

    def judge(self, server: str, *, trusts: bool) -> list[Judged[types.Tool]]:
        """Returns the tools of a server with the reasons against their use."""
        with self._turn:
            offered = {
                name: Judged(
                    each.tool,
                    each.definition,
                    (*each.findings, *self._names.shadowing(server, name, each.mentions)),
                )
                for name, each in self._reviewed[server].items()
            }
        return judge(server, offered, self._pins, trusts=trusts)


def _speak_of(names: frozenset[str], reviewed: Mapping[str, _Reviewed]) -> bool:
    """Returns whether one of the tools mentions one of the names, or may look like one."""
    return bool(names) and any(
        not names.isdisjoint(each.mentions) or not name.isascii() for name, each in reviewed.items()
    )
