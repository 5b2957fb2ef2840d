"""Inspects other servers, shows what is in quarantine, and records approvals."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime

import mcp_types as types
import typer

from server.app import App
from server.cli.invocation import invocation
from server.cli.terminal.screen import echo, fail, forget_typed, wrapped
from server.composition.tools import discover_tools, function_files
from server.mcp.visible import visible
from server.settings import Settings
from server.upstream.connections.listing import Cached, Listing
from server.upstream.held_skills import judge_skills, usable
from server.upstream.list_servers import ServerStatus, list_servers
from server.upstream.safety.pinning import Judged, difference, lines
from server.upstream.safety.review import Review
from server.upstream.skill_entries import Address, SkillEntry
from storage.approvals import ApprovalStore
from storage.catalog.catalog import Catalog, Pins
from storage.database import RECORD, Database
from tools.conversion.naming import exposed_name


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool or a skill awaiting review."""

    server: str
    exposed: str  # its name here
    name: str  # its name at the server; for a skill, its address
    judged: Judged[types.Tool] | Judged[SkillEntry]


@dataclass(frozen=True, slots=True)
class Inspected:
    """The result of inspecting a server."""

    server: str
    status: ServerStatus
    quarantined: tuple[Quarantined, ...]


class Inspection:
    """Inspects the servers without approving anything."""

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
        found = await list_servers(
            {name: named[name] for name in servers},
            App(self._settings).parts.transports(),
            self._cached,
        )
        registry = discover_tools(self._settings.collections)
        await function_files(self._settings, os.environ, registry).load_once()
        ours = [each.name for each in registry.offers()]
        review = Review(named, self.pins)
        for name, settings in named.items():
            if name in found:
                listing = found[name].listing
            else:
                listing = await self._cached.get(name, settings) if settings.enabled else None
            review.put(name, () if listing is None else listing.tools, ours)
        return [
            Inspected(
                name,
                found[name],
                (*_quarantined_tools(review, name), *self._skills(name, found[name].listing)),
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


def _quarantined_tools(review: Review, server: str) -> tuple[Quarantined, ...]:
    return tuple(
        Quarantined(server, exposed_name(server, judged.item.name), judged.item.name, judged)
        for judged in review.judge(server, trusts=False)
        if judged.findings
    )


def review(seen: Inspected, pins: Pins) -> None:
    """Shows each tool and skill in quarantine, the reasons, and its definition or changes."""
    _say_how(seen)
    for each in seen.quarantined:
        _show(each, pins)
    if seen.quarantined:
        command = f"{invocation()} servers approve {seen.server}"
        _say(f"To accept what is shown: {command} TOOL, or {command} --all")
    else:
        _say(f"Nothing of {seen.server} is in quarantine.")


def approve(
    seen: Inspected, pins: Pins, approvals: ApprovalStore, tools: Sequence[str], *, every: bool
) -> None:
    """Shows tools and skills in quarantine, and approves the definitions that were shown.

    Temporary and one-time approvals of calls are deleted: they were for the old definition.
    """
    _say_how(seen)
    for each in _select(seen, tools, every=every):
        _show(each, pins)
        forget_typed()
        if typer.confirm(f"Accept this definition of {each.exposed}?"):
            definition = each.judged.definition
            approvals.forget(each.exposed)
            pins.approve(each.server, each.name, definition.sha256, definition.text)
            _say(f"{each.exposed} may be used.")


def _select(seen: Inspected, tools: Sequence[str], *, every: bool) -> Sequence[Quarantined]:
    if every:
        return seen.quarantined
    by_name = {each.name: each for each in seen.quarantined}
    by_name |= {each.exposed: each for each in seen.quarantined}
    unknown = [name for name in tools if name not in by_name]
    if unknown or not tools:
        waiting = ", ".join(each.exposed for each in seen.quarantined) or "nothing"
        problem = f"{unknown[0]!r} is not in quarantine" if unknown else "Name a tool, or --all"
        fail(f"{problem}; in quarantine for {seen.server}: {waiting}.")
    return [by_name[name] for name in dict.fromkeys(tools)]


def _say_how(seen: Inspected) -> None:
    if seen.status.problem:
        before = "; this is what it offered last" if seen.status.listing else ""
        _say(f"{seen.server} {seen.status.problem}{before}.")


def _show(tool: Quarantined, pins: Pins) -> None:
    judged = tool.judged
    own = json.dumps(tool.name, ensure_ascii=False)
    _say(f"{tool.exposed}  (its server calls it {own})")
    for finding in judged.findings:
        _say(f"  {finding.reason}")
        if finding.shown:
            _say(f"      {' '.join(finding.shown.split())}")
    accepted = pins.definition(tool.server, tool.name)
    content = judged.definition.content
    if judged.pin is not None and accepted is not None:
        day = datetime.fromtimestamp(judged.pin.pinned_at).astimezone().strftime("%Y-%m-%d %H:%M")
        _say(f"  changes since {day}: accepted (-), now (+):")
        shown = difference(accepted, content)
    else:
        _say("  its definition:")
        shown = lines(content)
    for line in shown:
        _say(f"    {line}")


def _say(line: str) -> None:
    """Prints one line, with invisible characters marked."""
    echo(wrapped(visible(line)))
