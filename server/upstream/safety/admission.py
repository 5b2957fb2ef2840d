"""Admission: registers the tools of other servers, some of them in quarantine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

import anyio
import anyio.to_thread
import mcp_types as types

from server.settings.gateway import ServerSettings
from server.upstream.safety.conversion import Invoke, to_barred, to_spec
from server.upstream.safety.pinning import Judged
from server.upstream.safety.review import Review
from storage.catalog.catalog import Pins
from storage.errors import StorageError
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

POLL_SECONDS = 0.5
"""Interval for checking approvals by other processes."""

_logger = logging.getLogger("toolcrib")


@dataclass(slots=True)
class _Offer:
    """A server, and the tools made from its listing."""

    settings: ServerSettings
    invoke: Callable[[str], Invoke]
    specs: dict[str, tuple[Judged[types.Tool], ToolSpec]] = field(default_factory=dict)


class Admission:
    """Registers the tools of other servers."""

    def __init__(self, registry: ToolRegistry, pins: Pins, servers: Iterable[str]) -> None:
        self._registry = registry
        self._pins = pins
        self._review = Review(servers, pins)
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
        """Replaces a server's tools, which `invoke` calls by the server's own names.

        Judges tools of other servers again if they mention added or removed names.
        """
        for name in sorted(settings.tools.keys() - {each.name for each in tools}):
            _logger.warning("servers.%s.tools: the server has no tool %r.", server, name)
        async with self._turn:
            known = self._offers.get(server)
            self._offers[server] = _Offer(settings, invoke, known.specs if known else {})
            ours = [each.name for each in self._registry.offers() if not each.server]
            put = partial(self._review.put, server, tools, ours)
            for each in sorted(await anyio.to_thread.run_sync(put)):
                await self._judge(each)

    async def watch(self) -> None:
        """Releases tools within a second of their approval in any process."""
        while True:
            await anyio.sleep(POLL_SECONDS)
            barred = [
                server
                for server, offer in self._offers.items()
                if any(judged.quarantine_reason for judged, _ in offer.specs.values())
            ]
            if not barred:
                continue
            is_news = await anyio.to_thread.run_sync(self._is_news)
            for server in barred if is_news else ():
                async with self._turn:
                    await self._judge(server)

    def _is_news(self) -> bool:
        """Returns whether there are new approvals, or the store is unreadable."""
        try:
            approvals = self._pins.approvals()
        except StorageError:  # judge again, as this may have barred tools
            approvals = -1
        before, self._approvals = self._approvals, approvals
        return before != approvals

    async def _judge(self, server: str) -> None:
        specs = await anyio.to_thread.run_sync(self._specs, server)
        self._registry.replace_source(f"upstream:{server}", specs)

    def _specs(self, server: str) -> list[ToolSpec]:
        """Returns the tools that the settings allow; reuses the objects of unchanged ones."""
        offer = self._offers[server]
        made: dict[str, tuple[Judged[types.Tool], ToolSpec]] = {}
        for judged in self._review.judge(server, trusts=True):
            name = judged.item.name
            if not _is_allowed(name, offer.settings):
                continue
            before = offer.specs.get(name)
            if (
                before
                and before[0].item is judged.item
                and before[0].quarantine_reason == judged.quarantine_reason
            ):
                made[name] = before
                continue
            spec = to_spec(server, judged.item, offer.settings, offer.invoke(name))
            made[name] = (
                judged,
                to_barred(spec, judged.quarantine_reason) if judged.quarantine_reason else spec,
            )
        offer.specs = made
        return [spec for _, spec in made.values()]


def _is_allowed(name: str, settings: ServerSettings) -> bool:
    """Returns whether a server's settings allow a tool of this name."""
    if any(fnmatchcase(name, each) for each in settings.deny):
        return False
    return not settings.allow or any(fnmatchcase(name, each) for each in settings.allow)
