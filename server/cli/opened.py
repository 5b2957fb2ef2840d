"""Opens what a command needs: the app, the record alone, or the tools alone."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from server.app import App, build
from server.cli.invocation import invocation, invocation_elsewhere
from server.cli.terminal.screen import echo
from server.composition.created import list_created
from server.composition.registered import apis_of, discover_tools, function_files
from server.composition.safety import make_machine
from server.settings import Settings
from server.settings.collections import collections_of
from server.settings.sources import load
from storage.catalog.created_tools import CreatedToolStore
from storage.database import RECORD, Database
from storage.errors import BackupError
from storage.keeping.lost import check_record
from tools.core.registry import ToolRegistry
from tools.sandbox.secrets.redaction import Redaction

if TYPE_CHECKING:
    from server.upstream.gateway import Gateway
    from server.upstream.no_gateway import NoGateway
    from tools.functions.files import FunctionFiles
    from tools.openapi.api import Apis


@contextmanager
def open_app(
    *,
    root: Path | None = None,
    data_dir: Path | None = None,
    config_file: Path | None = None,
    functions: list[Path] | None = None,
) -> Iterator[App]:
    """Opens the app with the settings, without its background work.

    Args:
        root: The root of the file tools, if not from the settings.
        data_dir: The data directory, if not from the settings.
        config_file: The TOML file with the settings.
        functions: The function files, if not from the settings.
    """
    # asyncio warns of worker processes whose end it notices in two ways.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    flags = {"root": root, "data_dir": data_dir, "functions.paths": functions or None}
    settings = load(flags, config_file=config_file)
    app = build(settings, command=invocation_elsewhere(settings))
    try:
        yield app
    finally:
        app.library.close()


@contextmanager
def record(data_dir: Path | None, config_file: Path | None) -> Iterator[Database]:
    """Opens the record without the rest of the app.

    Args:
        data_dir: The data directory, if not from the settings.
        config_file: The TOML file with the settings.
    """
    directory = load({"data_dir": data_dir}, config_file=config_file).data_dir
    check_record(directory / RECORD)
    if not (directory / RECORD).exists():
        raise BackupError(
            f"Nothing is stored in {directory}.",
            suggestions=("Name the data directory with --data-dir.",),
        )
    with closing(Database(directory / RECORD)) as database:
        yield database


def tools_of(settings: Settings, name: str | None = None) -> ToolRegistry:
    """Returns all tools of the user in the settings, for display and not for calls.

    Tools of other servers are as last listed.

    Args:
        settings: The settings with function files and servers.
        name: A tool; its server is asked if it was never listed.
    """
    return _with_servers(settings, name) if settings.servers else _of_this_machine(settings)


def tell_unlisted(gateway: Gateway | NoGateway) -> None:
    """Prints to stderr which servers were never listed."""
    names = [name for name, each in gateway.upstreams.items() if each.listing is None]
    if names:
        echo(
            f"The tools of {', '.join(names)} are not known yet: run `{invocation()} servers`.",
            err=True,
        )


def _of_this_machine(settings: Settings) -> ToolRegistry:
    """Lists local tools; creates no data directory."""
    collections = collections_of(
        settings.sources, settings.directories, settings.root, settings.secrets
    )
    registry = discover_tools(collections)
    machine = make_machine(settings, os.environ, Redaction())
    apis = apis_of(settings, registry, machine)
    anyio.run(load_own, function_files(settings, os.environ, registry), apis)
    if (settings.data_dir / RECORD).exists():
        with closing(Database(settings.data_dir / RECORD)) as database:
            list_created(registry, CreatedToolStore(database))
    return registry.of(settings.identity.user_id)


async def load_own(functions: FunctionFiles, apis: Apis | None) -> None:
    """Registers the tools of function files and HTTP APIs, for display."""
    await functions.load_once()
    if apis is not None:
        await apis.load()


def _with_servers(settings: Settings, name: str | None) -> ToolRegistry:
    app = build(settings)

    async def load() -> None:
        await load_own(app.functions, app.apis)
        async with app.gateway.running(eager=False):
            await app.gateway.ready()
            if name is not None:
                await app.gateway.find(name)
            else:
                tell_unlisted(app.gateway)

    try:
        anyio.run(load)
        app.created.load()
    finally:
        app.library.close()
    return app.registry.of(settings.identity.user_id)
