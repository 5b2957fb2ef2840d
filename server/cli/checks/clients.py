"""Checks of the MCP clients on this machine: our entry in each, and when it last connected."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from server.cli.checks.data import record_of
from server.cli.checks.findings import Finding, run_check
from server.cli.clients.plugins import added_plugins
from server.cli.invocation import invocation
from server.clients.client import Client
from server.clients.dialects import files_of, named_servers
from server.clients.launch import own_launch, words_of
from server.clients.locations import OwnAddress, starts_toolcrib
from server.clients.table import CLIENTS
from server.mcp.sessions import is_one_of
from storage.database import Database
from storage.errors import StorageError

OTHER_CLIENTS = "Other clients"


def check_clients(data_dir: Path | None, own: OwnAddress) -> Iterator[Finding]:
    """Checks the clients that are on this machine, and names the others."""
    seen = _last_calls(data_dir)
    missing = []
    for client in CLIENTS.values():
        if data_dir is not None and added_plugins([client], data_dir):
            detail = f"plugin, {version('toolcrib')}; {_last_call(client, seen)}"
            yield Finding(client.title, ok=True, detail=detail)
        elif client.is_found(os.environ):
            yield run_check(client.title, partial(_check, client, own, seen))
        else:
            missing.append(client.title)
    if missing:
        yield Finding(OTHER_CLIENTS, ok=None, detail=f"not found: {', '.join(missing)}")


def _check(client: Client, own: OwnAddress, seen: Mapping[str, float]) -> str | Finding:
    files, _ = files_of(client, Path.cwd(), os.environ)
    entries = [
        (each.name, each.entry, each.file)
        for each in named_servers(files, Path.cwd())
        if isinstance(each.entry, dict) and starts_toolcrib(each.entry, own)
    ]
    if not entries:
        advice = f"without Toolcrib: `{invocation()} install {client.name}` adds it"
        return Finding(client.title, ok=None, detail=advice)
    name, entry, file = entries[0]
    words = words_of(entry)
    if words[0] and os.sep in words[0] and not os.access(words[0], os.X_OK):
        raise FileNotFoundError(
            f"{name!r} in {file} starts {words[0]}, which does not exist:"
            f" `{invocation()} install {client.name}` corrects it."
        )
    ours = own_launch(os.environ).words
    which = version("toolcrib") if words[: len(ours)] == ours else f"starts {words[0]}"
    return f"{name!r} in {file}, {which}; {_last_call(client, seen)}"


def _last_call(client: Client, seen: Mapping[str, float]) -> str:
    times = [time for name, time in seen.items() if is_one_of(name, client.reports)]
    if not times:
        return "no call yet"
    return f"last call {datetime.fromtimestamp(max(times), UTC).astimezone():%Y-%m-%d %H:%M}"


def _last_calls(data_dir: Path | None) -> dict[str, float]:
    """Returns when each client made its last call, by the name with which it connects."""
    record = None if data_dir is None else record_of(data_dir)
    if record is None:
        return {}
    try:
        with closing(Database(record)) as database, database.read() as connection:
            return dict(
                connection.execute("SELECT client, max(last_time) FROM sessions GROUP BY 1")
            )
    except (StorageError, sqlite3.Error):  # reported by the check of the record
        return {}
