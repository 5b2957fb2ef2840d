"""Opens what a command needs: the app, the record alone, or the tools alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from server.app import App
from server.cli.invocation import invocation, invocation_elsewhere
from server.cli.terminal.screen import echo
from server.hooks.events import store_left
from server.settings import Settings
from server.settings.sources import load
from storage.database import RECORD, Database
from storage.errors import BackupError
from storage.keeping.lost import check_record
from tools.core.registry import ToolRegistry

if TYPE_CHECKING:
    from server.upstream.late_gateway import LateGateway
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
    """Opens the app with the settings, without its background work."""
    # asyncio warns of worker processes whose end it notices in two ways.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    flags = {"root": root, "data_dir": data_dir, "functions.paths": functions or None}
    settings = load(flags, config_file=config_file)
    app = App(settings, command=invocation_elsewhere(settings))
    try:
        yield app
    finally:
        app.close()


@contextmanager
def record(data_dir: Path | None, config_file: Path | None) -> Iterator[Database]:
    """Opens the record without the rest of the app."""
    directory = load({"data_dir": data_dir}, config_file=config_file).data_dir
    check_record(directory / RECORD)
    if not (directory / RECORD).exists():
        raise BackupError(
            f"Nothing is stored in {directory}.",
            suggestions=("Name the data directory with --data-dir.",),
        )
    store_left(directory)
    with closing(Database(directory / RECORD)) as database:
        yield database


def tools_of(settings: Settings, name: str | None = None) -> ToolRegistry:
    """Returns all tools of the user in the settings, for display and not for calls.

    Tools of other servers are as last listed; the server of the tool `name` is asked if it never
    was. Creates no data directory unless there are servers.
    """
    app = App(settings)

    async def load() -> None:
        await load_own(app.functions, app.apis)
        if not settings.servers:
            return
        async with app.gateway.running(eager=False):
            await app.gateway.ready()
            if name is not None:
                await app.gateway.find(name)
            else:
                tell_unlisted(app.gateway)

    try:
        anyio.run(load)
        if (settings.data_dir / RECORD).exists():
            app.created.load()
    finally:
        app.close()
    return app.registry.of(settings.identity.user_id)


async def load_own(functions: FunctionFiles, apis: Apis | None) -> None:
    """Registers the tools of function files and HTTP APIs, for display."""
    await functions.load_once()
    if apis is not None:
        await apis.load()


def tell_unlisted(gateway: LateGateway) -> None:
    """Prints to stderr which servers were never listed."""
    names = [name for name, each in gateway.upstreams.items() if each.listing is None]
    if names:
        echo(
            f"The tools of {', '.join(names)} are not known yet: run `{invocation()} servers`.",
            err=True,
        )
