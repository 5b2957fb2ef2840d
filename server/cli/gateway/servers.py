"""`toolcrib servers`: lists other MCP servers, their state, and tools awaiting review."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.gateway.editing import add, disable, enable, remove, undo
from server.cli.gateway.login import login, logout
from server.cli.gateway.trial import check_known, settings_with, try_server
from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption, JsonOption, ServerArgument
from server.cli.terminal.screen import check_person, echo, fail, print_json, say
from server.mcp.visible import visible

if TYPE_CHECKING:
    from server.cli.gateway.inspection import Inspected
    from server.settings.gateway import ServerSettings

NONE_YET = """\
No other MCP server is set up yet. Import those of a client, add one with
`toolcrib servers add`, or name one in
{}:

    [servers.everything]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-everything"]
"""

COLOURS = {"up": "green", "down": "red"}


servers = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    help="Connect to the MCP servers in the settings and show what they offer, or change them.",
)
for _command in (add, remove, enable, disable, undo, login, logout):
    servers.command(_command.__name__)(_command)
servers.command("test")(try_server)


@servers.callback()
def _default(
    context: typer.Context,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    if context.invoked_subcommand is None:
        show(as_json=as_json, data_dir=data_dir, config=config)
    elif as_json or data_dir or config:
        raise typer.BadParameter(f"write options after {context.invoked_subcommand}")


@servers.command("list")
def show(
    as_json: JsonOption = False, data_dir: DataDirOption = None, config: ConfigOption = None
) -> None:
    """Connect to all servers, and show what they offer; the default."""
    import anyio

    from server.cli.gateway.import_servers import importable
    from server.cli.gateway.inspection import inspection
    from server.settings.sources import load

    settings = load({"data_dir": data_dir}, config_file=config)
    with inspection(settings) as inspect:
        seen = anyio.run(inspect.all)
    shown = [_facts(each, settings.servers[each.server]) for each in seen]
    if as_json:
        print_json({"servers": shown})
        return
    if not shown:
        echo(NONE_YET.format(visible(str(settings.config_file))))
        echo("\n".join(importable()))
    for facts in shown:
        state, reached = facts["state"], visible(facts["reached_by"])
        style = COLOURS.get(state, "dim")
        say((facts["name"], "bold"), "  ", (state, style), f"  {reached}")
        for line in _lines(facts):
            say(f"    {line}")


@servers.command("review")
def review(
    name: ServerArgument, data_dir: DataDirOption = None, config: ConfigOption = None
) -> None:
    """Show which tools are in quarantine, and why."""
    import anyio

    from server.cli.gateway import inspection

    with inspection.inspection(settings_with(name, data_dir, config)) as inspect:
        inspection.review(anyio.run(inspect.one, name), inspect.pins)


@servers.command("approve")
def approve(
    name: ServerArgument,
    tools: Annotated[
        list[str] | None,
        typer.Argument(help="Tools to approve, by their names here or at the server."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Approve all of the server's tools in quarantine.")
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Show tools in quarantine, and accept them."""
    import anyio

    from server.cli.gateway import inspection

    settings = settings_with(name, data_dir, config)
    check_person("Approving tools")
    with inspection.inspection(settings) as inspect:
        seen = anyio.run(inspect.one, name)
        inspection.approve(seen, inspect.pins, inspect.approvals, tools or [], every=every)


@servers.command("logs")
def logs(
    name: ServerArgument,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep showing new lines, until Ctrl-C.")
    ] = False,
    last: Annotated[int, typer.Option("--last", min=0, help="Maximum number of lines.")] = 100,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Show what a server that is a program printed, also of one that is down."""
    from server.cli.safety.log import POLL_INTERVAL
    from server.settings.sources import load
    from server.upstream.connections.server_log import log_path
    from tools.core.audit.trail import AuditTrail

    settings = load({"data_dir": data_dir}, config_file=config)
    path = log_path(settings.data_dir, name)
    if not path.exists():
        check_known(name, settings)
    trail = AuditTrail(path)
    try:
        entries = trail.last(last, lambda _: True)
        if last and not entries:
            echo(f"{name} has printed nothing yet.", err=True)
        while True:
            for entry in entries:
                echo(visible(_log_line(entry)))
            if not follow:
                break
            time.sleep(POLL_INTERVAL)
            entries = trail.news()
    except KeyboardInterrupt:
        pass
    except OSError as error:
        fail(f"Error: the log of {name} cannot be read: {error}")


def _log_line(entry: Mapping[str, Any]) -> str:
    from server.cli.safety.log import format_time

    return f"{format_time(entry['time'])}  {entry.get('pid')}  {entry.get('text')}"


def _facts(seen: Inspected, settings: ServerSettings) -> dict[str, Any]:
    from server.cli.gateway.import_servers import reached_by

    listing = seen.status.listing
    return {
        "name": seen.server,
        "reached_by": reached_by(settings),
        "state": str(seen.status.state),
        "problem": seen.status.problem,
        "tools": listing and len(listing.tools),
        "resources": listing and len(listing.resources) + len(listing.templates),
        "prompts": listing and len(listing.prompts),
        "skills": listing and len(listing.skills),
        "quarantined": [each.exposed for each in seen.quarantined],
    }


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines below a server's name."""
    from tools.answers.directory import counted

    if facts["problem"]:
        yield f"It {visible(facts['problem'])}."
        if facts["problem"].startswith("requires sign-in"):
            yield f"To sign in: {invocation()} servers login {facts['name']}"
    if facts["tools"] is not None:
        nouns = ("tool", "resource", "prompt", *["skill"] * bool(facts["skills"]))
        offers = ", ".join(counted(facts[f"{noun}s"], noun) for noun in nouns)
        yield f"{offers}{' when it was last asked' * (facts['state'] != 'up')}"
    if quarantined := facts["quarantined"]:
        yield f"{len(quarantined)} in quarantine: {invocation()} servers review {facts['name']}"
