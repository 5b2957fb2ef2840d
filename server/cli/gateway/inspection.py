"""The other servers, inspected: what they offer, and what of it was accepted."""

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
from storage.catalog.catalog import Catalog
from storage.catalog.pins import Pins
from storage.database import RECORD, Database
from tools.conversion.naming import exposed_name


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool or a skill that a person has to look at.

    Attributes:
        server: Its server.
        exposed: What it is called here.
        name: What its server calls it: of a skill the address.
        judged: What is wrong with it.
    """

    server: str
    exposed: str
    name: str
    judged: Judged[types.Tool] | Judged[SkillEntry]


@dataclass(frozen=True, slots=True)
class Inspected:
    """A server.

    Attributes:
        server: Its name.
        surveyed: What became known of it.
        quarantined: Those of its tools and skills that a person has to look at.
    """

    server: str
    surveyed: Surveyed
    quarantined: tuple[Quarantined, ...]


class Inspection:
    """Looks at the servers, and accepts nothing.

    Args:
        settings: Those with the servers.
        database: The record.

    Attributes:
        pins: What was accepted of their tools.
        approvals: What was allowed of their calls.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        catalog = Catalog(database)
        self._settings = settings
        self._cached = Cached(catalog.listings)
        self.pins: Pins = catalog.pins
        self.approvals = ApprovalStore(database)

    async def all(self) -> list[Inspected]:
        """All servers, each connected to."""
        return await self._inspected(tuple(self._settings.servers))

    async def one(self, server: str) -> Inspected:
        """One server, connected to; of the others counts what they offered last."""
        return (await self._inspected((server,)))[0]

    async def _inspected(self, servers: tuple[str, ...]) -> list[Inspected]:
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
                (*_quarantined(vetting, name), *self._skills(name, surveyed[name].listing)),
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
    """Opens what is stored for an inspection."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of the ends of programs
    settings.create_directories()
    with closing(Database(settings.data_dir / RECORD)) as database:
        yield Inspection(settings, database)


def _quarantined(vetting: Vetting, server: str) -> tuple[Quarantined, ...]:
    return tuple(
        Quarantined(server, exposed_name(server, judged.item.name), judged.item.name, judged)
        for judged in vetting.judge(server, trusts=False)
        if judged.findings
    )
