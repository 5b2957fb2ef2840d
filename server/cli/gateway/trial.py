"""`toolcrib servers test`: connects to one server, lists it, and times each step."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption, ServerArgument
from server.cli.terminal.screen import fail, say
from server.mcp.visible import visible

if TYPE_CHECKING:
    from pathlib import Path

    from server.settings import Settings


def try_server(
    name: ServerArgument, data_dir: DataDirOption = None, config: ConfigOption = None
) -> None:
    """Connect to one server and list what it offers, with the time of each step.

    Calls none of its tools. Exits with 1 if a step fails.
    """
    import anyio

    settings = settings_with(name, data_dir, config)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns when programs end
    problem = anyio.run(_try, name, settings)
    if problem:
        fail(f"{visible(problem)}\nNext: {_advice(name, problem)}")
    if not settings.servers[name].enabled:
        say(f"It is not enabled: `{invocation()} servers enable {name}`")


def settings_with(name: str, data_dir: Path | None, config: Path | None) -> Settings:
    """Returns the settings; ends the command if they do not have the server."""
    from server.settings.sources import load

    settings = load({"data_dir": data_dir}, config_file=config)
    check_known(name, settings)
    return settings


def check_known(name: str, settings: Settings) -> None:
    """Ends the command if the settings do not have the server."""
    if name not in settings.servers:
        known = ", ".join(settings.servers) or "none"
        fail(f"{name!r} is not a server in the settings; there are: {known}.")


async def _try(name: str, settings: Settings) -> str:
    """Takes the steps in turn; returns what failed, or an empty text."""
    import anyio
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    from server.app import App
    from server.cli.gateway.import_servers import reached_by
    from server.upstream.connections.connect import Opener
    from server.upstream.connections.connection import Callbacks
    from server.upstream.connections.link import problem_of
    from server.upstream.connections.listing import list_all
    from tools.answers.directory import counted
    from tools.core.errors import ToolError

    server = settings.servers[name]
    transports = App(settings).parts.transports()
    opener = Opener(name, server, transports, lambda _server, _session: Callbacks())
    say((name, "bold"), f"  {reached_by(server)}")
    step, began = "Connect", time.monotonic()
    try:
        async with anyio.create_task_group() as group:
            connection = await opener.open("test", group)
            client = connection.client
            info = client.server_info
            named = "" if info is None else f"{info.name} {info.version}, "
            _step(step, began, f"{named}protocol {client.protocol_version}")
            step, began = "List", time.monotonic()
            with anyio.fail_after(server.start_timeout):
                async with connection.used():
                    listing = await list_all(connection)
            offers = (
                counted(len(listing.tools), "tool"),
                counted(len(listing.resources) + len(listing.templates), "resource"),
                counted(len(listing.prompts), "prompt"),
            )
            _step(step, began, ", ".join(offers))
            step, began = "Close", time.monotonic()
            connection.close()
            with anyio.move_on_after(server.start_timeout):
                await connection.closed.wait()
            _step(step, began, "ended as asked")
            group.cancel_scope.cancel()
    except (ExceptionGroup, ToolError, MCPError, ValidationError, TimeoutError) as error:
        problem = (await problem_of(error, None)).removeprefix("cannot be used: ")
        return f"{step} failed after {time.monotonic() - began:.2f} s: {name} {problem}."
    finally:
        with anyio.CancelScope(shield=True):
            await transports.aclose()
    return ""


def _step(name: str, began: float, detail: str) -> None:
    say(f"  {name:8}{time.monotonic() - began:6.2f} s  {detail}")


def _advice(name: str, problem: str) -> str:
    if "requires sign-in" in problem:
        return f"`{invocation()} servers login {name}`"
    return (
        f"correct [servers.{name}] in the settings file, and test it again."
        f" `{invocation()} doctor` checks its command, variables and address."
    )
