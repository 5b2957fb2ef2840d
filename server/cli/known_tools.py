"""The tools as a command line knows them: with those of function files and of other servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import typer

from server.app import build, discover_tools, function_files
from server.cli.invocation import invocation
from server.settings import Settings
from server.settings.collections import collections_of
from tools.core.registry import ToolRegistry

if TYPE_CHECKING:
    from server.upstream.absent import NoGateway
    from server.upstream.gateway import Gateway

__all__ = ["tell_unlisted", "tools_of"]


def tools_of(settings: Settings, name: str | None = None) -> ToolRegistry:
    """Every tool that there is, to be looked at, not called.

    Those of other servers are as these told when they were last connected to.

    Args:
        settings: Which function files and other servers there are.
        name: A tool whose server is asked for it, if that never was.
    """
    return _with_servers(settings, name) if settings.servers else _of_this_machine(settings)


def tell_unlisted(gateway: Gateway | NoGateway) -> None:
    """Says on the standard error which servers never told what they offer."""
    names = [name for name, each in gateway.upstreams.items() if each.listing is None]
    if names:
        typer.echo(
            f"What tools {', '.join(names)} may have is not known yet:"
            f" `{invocation()} servers` asks.",
            err=True,
        )


def _of_this_machine(settings: Settings) -> ToolRegistry:
    """Without a data directory, which is made for none of these."""
    registry = discover_tools(collections_of(settings.sources, settings.directories, settings.root))
    anyio.run(function_files(settings, registry).load_once)
    return registry


def _with_servers(settings: Settings, name: str | None) -> ToolRegistry:
    app = build(settings)

    async def load() -> None:
        await app.functions.load_once()
        async with app.gateway.running(eager=False):
            await app.gateway.ready()
            if name is not None:
                await app.gateway.find(name)
            else:
                tell_unlisted(app.gateway)

    try:
        anyio.run(load)
    finally:
        app.library.close()
    return app.registry
