"""The names of all tools, by which one is noticed that speaks of another's, or passes for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from server.upstream.safety.deception import Finding
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
