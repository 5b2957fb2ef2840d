"""`toolcrib status`, and what `toolcrib` alone prints: what is here, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.checks.data import record_of
from server.cli.checks.findings import Finding, run_check, show
from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption, JsonOption
from server.cli.terminal.screen import echo, print_json
from server.settings.sources import load
from storage.database import Database
from storage.models import ContextType, Identity, SearchFilter
from tools.answers.directory import counted

if TYPE_CHECKING:
    from server.settings import Settings

NOUNS = {ContextType.KNOWLEDGE: "piece of knowledge", ContextType.ENTITY: "person or thing"}
MOST_PARTS = 4
"""Entries of the data directory whose sizes are shown."""

SHOWN_BYTES = 50_000
"""Size from which an entry is shown."""


def status(
    as_json: JsonOption = False, data_dir: DataDirOption = None, config: ConfigOption = None
) -> None:
    """Show what is stored, how large it is, which clients and servers there are, and what waits."""
    findings = list(_findings(load({"data_dir": data_dir}, config_file=config)))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            show(finding)


def greet() -> None:
    """Prints what a newcomer can do next, after what is here already."""
    from server.cli.checks.clients import OTHER_CLIENTS

    settings = load()
    echo(f"Toolcrib {version('toolcrib')}: tools and a memory for AI agents, on this machine.\n")
    for finding in _findings(settings):
        if finding.subject != OTHER_CLIENTS:
            show(finding)
    command = invocation()
    steps = (
        (f"{command} install", "connect the AI clients on this machine"),
        (f"{command} import FOLDER", "store your documents, to be found by meaning"),
        (f'{command} query "…"', "ask what is stored"),
    )
    width = max(len(step) for step, _ in steps)
    echo("\nNext:")
    for step, purpose in steps:
        echo(f"  {step.ljust(width)}   {purpose}")
    echo(f"\n{command} --help lists every command, {command} doctor checks the installation.")


def _findings(settings: Settings) -> Iterator[Finding]:
    from server.cli.checks.clients import check_clients
    from server.clients.locations import OwnAddress

    record = record_of(settings.data_dir)
    if record is None:
        yield Finding("Stored", ok=None, detail="nothing yet")
    else:
        with ExitStack() as opened:  # once, by the first check, which reports a failure
            database = cache(lambda: opened.enter_context(closing(Database(record))))
            yield run_check("Stored", lambda: _stored(database(), settings))
            yield run_check("Data directory", lambda: _sizes(settings.data_dir))
            yield run_check("Questions", lambda: _waiting(database()))
    servers = [
        name if server.enabled else f"{name} (not enabled)"
        for name, server in settings.servers.items()
    ]
    yield Finding("MCP servers", ok=None, detail=", ".join(servers) or "none")
    own = OwnAddress(settings.http.host, settings.http.port)
    yield from check_clients(settings.data_dir, own)


def _stored(database: Database, settings: Settings) -> Finding:
    """Counts what the user of the settings has."""
    from storage.contexts.contexts import ContextRepository

    identity = Identity(**settings.identity.model_dump())
    kinds = ContextRepository(database).count_kinds(identity, SearchFilter())
    counts = [counted(count, NOUNS.get(kind, kind)) for kind, count in kinds.items()]
    return Finding("Stored", ok=None, detail=", ".join(counts) or "nothing yet")


def _waiting(database: Database) -> Finding:
    """Counts the questions that wait for a person's answer."""
    from storage.approvals import ApprovalStore

    count = len(ApprovalStore(database).waiting())
    detail = f"{count} waiting: `{invocation()} approvals`" if count else "none waiting"
    return Finding("Questions", ok=None, detail=detail)


def _sizes(directory: Path) -> Finding:
    """Returns the size of a directory, and of its largest entries."""
    sizes = {entry.name: _size(entry) for entry in directory.iterdir()}
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:MOST_PARTS]
    parts = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in largest if size >= SHOWN_BYTES)
    detail = f"{directory}, {sum(sizes.values()) / 1e6:.1f} MB ({parts or 'nearly empty'})"
    return Finding("Data directory", ok=None, detail=detail)


def _size(entry: Path) -> int:
    files = entry.rglob("*") if entry.is_dir() and not entry.is_symlink() else (entry,)
    return sum(each.lstat().st_size for each in files)
