"""Admission: the tools of other servers come into the registry, some of them in quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

import anyio
import anyio.to_thread
import mcp_types as types

from server.settings.gateway import ServerSettings
from server.upstream.safety.conversion import Invoke, to_barred, to_spec
from server.upstream.safety.judging import Judged
from server.upstream.safety.vetting import Vetting
from storage.catalog.pins import Pins
from storage.errors import StorageError
from tools.conversion.naming import exposed_name
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.core.toolset import ToolSet
from tools.retrieval.catalogue import check_admitted

POLL_SECONDS = 0.5
"""How soon an approval of another process counts here."""


@dataclass(slots=True)
class _Offer:
    """A server, and what its tools became here."""

    settings: ServerSettings
    invoke: Callable[[str], Invoke]
    specs: dict[str, tuple[Judged[types.Tool], ToolSpec]] = field(default_factory=dict)


class Admission:
    """Keeps the tools of other servers in the registry.

    Args:
        registry: Where they are kept.
        pins: Which definitions were accepted.
        servers: The names of all servers in the settings.
    """

    def __init__(self, registry: ToolRegistry, pins: Pins, servers: Iterable[str]) -> None:
        self._registry = registry
        self._pins = pins
        self._vetting = Vetting(servers, pins)
        self._offers: dict[str, _Offer] = {}
        self._approvals = 0
        self._turn = anyio.Lock()

    async def put(
        self,
        server: str,
        settings: ServerSettings,
        tools: Sequence[types.Tool],
        invoke: Callable[[str], Invoke],
    ) -> None:
        """Puts what a server lists now in the place of what it listed before.

        Tools of other servers that speak of what came or went are judged again.

        Args:
            server: Its name in the settings.
            settings: Those of the server.
            tools: All that it lists.
            invoke: What calls a tool, by the name that the server has for it.
        """
        async with self._turn:
            known = self._offers.get(server)
            self._offers[server] = _Offer(settings, invoke, known.specs if known else {})
            ours = [each.name for each in self._registry.offers() if not each.server]
            put = partial(self._vetting.put, server, tools, ours)
            for each in sorted(await anyio.to_thread.run_sync(put)):
                await self._judge(each)

    def check(self, server: str, own_name: str, tool_set: ToolSet | None) -> None:
        """Refuses a call of a tool that is in quarantine, or gone, since the call began.

        Args:
            server: Its server.
            own_name: What that calls it.
            tool_set: The tools that the caller may call; None means all.

        Raises:
            UnknownToolError: If the server has it no more.
        """
        check_admitted(self._registry.find(exposed_name(server, own_name), tool_set), tool_set)

    async def watch(self) -> None:
        """Frees tools within a second after a person has approved them, in whatever process."""
        while True:
            await anyio.sleep(POLL_SECONDS)
            barred = [server for server, offer in self._offers.items() if _holds_back(offer)]
            if not barred:
                continue
            is_news = await anyio.to_thread.run_sync(self._is_news)
            for server in barred if is_news else ():
                async with self._turn:
                    await self._judge(server)

    def _is_news(self) -> bool:
        """Whether a person approved anything since this was asked last, or it cannot be told."""
        try:
            approvals = self._pins.approvals()
        except StorageError:  # whatever was held back for that has to be tried again
            approvals = -1
        before, self._approvals = self._approvals, approvals
        return before != approvals

    async def _judge(self, server: str) -> None:
        specs = await anyio.to_thread.run_sync(self._specs, server)
        self._registry.replace_source(f"upstream:{server}", specs)

    def _specs(self, server: str) -> list[ToolSpec]:
        """The tools that the settings let through; what is as it was is the same object."""
        offer = self._offers[server]
        made: dict[str, tuple[Judged[types.Tool], ToolSpec]] = {}
        for judged in self._vetting.judge(server, trusts=True):
            name = judged.item.name
            if not _is_allowed(name, offer.settings):
                continue
            before = offer.specs.get(name)
            if before is not None and _is_same(before[0], judged):
                made[name] = before
            else:
                made[name] = (judged, _spec(server, offer, judged))
        offer.specs = made
        return [spec for _, spec in made.values()]


def _spec(server: str, offer: _Offer, judged: Judged[types.Tool]) -> ToolSpec:
    spec = to_spec(server, judged.item, offer.settings, offer.invoke(judged.item.name))
    return to_barred(spec, judged.barred) if judged.barred else spec


def _is_same(before: Judged[types.Tool], now: Judged[types.Tool]) -> bool:
    return before.item is now.item and before.barred == now.barred


def _is_allowed(name: str, settings: ServerSettings) -> bool:
    """Whether the settings of a server let its tool of that name through."""
    if any(fnmatchcase(name, each) for each in settings.deny):
        return False
    return not settings.allow or any(fnmatchcase(name, each) for each in settings.allow)


def _holds_back(offer: _Offer) -> bool:
    return any(judged.barred for judged, _ in offer.specs.values())
