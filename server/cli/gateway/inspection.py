"""Inspects other servers: what they offer, and which definitions were approved."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import mcp_types as types

from server.composition.registered import discover_tools, function_files
from server.settings import Settings
from server.settings.collections import collections_of
from server.upstream.connections.cached import Cached
from server.upstream.connections.listing import Listing
from server.upstream.connections.skill_entries import SkillEntry
from server.upstream.connections.transport import Transports
from server.upstream.safety.judging import Judged
from server.upstream.safety.survey import Surveyed, survey
from server.upstream.safety.vetting import Vetting
from server.upstream.skills.held_skills import usable
from server.upstream.skills.upstream_skill import Address
from server.upstream.skills.vetting import judge_skills
from storage.approvals import ApprovalStore
from storage.catalog.catalog import Catalog, Pins
from storage.database import RECORD, Database
from tools.conversion.naming import exposed_name


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool or a skill awaiting review.

    Attributes:
        server: Its server.
        exposed: Its name here.
        name: Its name at the server; for a skill, its address.
        judged: The findings.
    """

    server: str
    exposed: str
    name: str
    judged: Judged[types.Tool] | Judged[SkillEntry]


@dataclass(frozen=True, slots=True)
class Inspected:
    """The result of inspecting a server.

    Attributes:
        server: Its name.
        surveyed: Its state and listing.
        quarantined: Its tools and skills awaiting review.
    """

    server: str
    surveyed: Surveyed
    quarantined: tuple[Quarantined, ...]


class Inspection:
    """Inspects the servers without approving anything.

    Args:
        settings: The settings with the servers.
        database: The record.

    Attributes:
        pins: Approved definitions of tools.
        approvals: Approvals of calls.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        catalog = Catalog(database)
        self._settings = settings
        self._cached = Cached(catalog.listings)
        self.pins: Pins = catalog.pins
        self.approvals = ApprovalStore(database)

    async def all(self) -> list[Inspected]:
        """Connects to all servers and returns the findings."""
        return await self._inspect(tuple(self._settings.servers))

    async def one(self, server: str) -> Inspected:
        """Connects to one server; compares it with the last listings of the others."""
        return (await self._inspect((server,)))[0]

    async def _inspect(self, servers: tuple[str, ...]) -> list[Inspected]:
        named = self._settings.servers
        surveyed = await survey(
            {name: named[name] for name in servers},
            Transports(os.environ, proxy=self._settings.requests.proxy),
            self._cached,
        )
        registry = discover_tools(
            collections_of(self._settings.sources, self._settings.directories, self._settings.root)
        )
        await function_files(self._settings, os.environ, registry).load_once()
        ours = [each.name for each in registry.offers()]
        vetting = Vetting(named, self.pins)
        for name, settings in named.items():
            if name in surveyed:
                listing = surveyed[name].listing
            else:
                listing = await self._cached.get(name, settings) if settings.enabled else None
            vetting.put(name, () if listing is None else listing.tools, ours)
        return [
            Inspected(
                name,
                surveyed[name],
                (*_quarantined_tools(vetting, name), *self._skills(name, surveyed[name].listing)),
            )
            for name in servers
        ]

    def _skills(self, server: str, listing: Listing | None) -> Iterator[Quarantined]:
        entries = () if listing is None else usable(server, listing.skills)
        for judged in judge_skills(server, entries, self.pins, trusts=False):
            if judged.findings:
                path = Address.of(server, judged.item).path
                yield Quarantined(server, path, judged.item.uri, judged)


@contextmanager
def inspection(settings: Settings) -> Iterator[Inspection]:
    """Opens the stored data for an inspection."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns when programs end
    settings.create_directories()
    with closing(Database(settings.data_dir / RECORD)) as database:
        yield Inspection(settings, database)


def _quarantined_tools(vetting: Vetting, server: str) -> tuple[Quarantined, ...]:
    return tuple(
        Quarantined(server, exposed_name(server, judged.item.name), judged.item.name, judged)
        for judged in vetting.judge(server, trusts=False)
        if judged.findings
    )
