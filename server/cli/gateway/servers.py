"""`toolcrib servers`: lists other MCP servers, their state, and tools awaiting review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import check_person, echo, fail, print_json, say
from server.mcp.visible import visible

if TYPE_CHECKING:
    from server.cli.gateway.inspection import Inspected
    from server.settings.gateway import ServerSettings

NONE_YET = """\
No other MCP server is set up yet. Import those of a client, or name one in
{}:

    [servers.everything]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-everything"]
"""

COLOURS = {"up": "green", "down": "red"}


class Action(StrEnum):
    """The action of the command."""

    LIST = "list"
    REVIEW = "review"
    APPROVE = "approve"


def servers(  # noqa: PLR0913, PLR0917  # one parameter an option
    action: Annotated[
        Action,
        typer.Argument(
            help="list: all servers; review: which tools are in quarantine, and why; approve: "
            "show tools in quarantine, and accept them."
        ),
    ] = Action.LIST,
    name: Annotated[str, typer.Argument(help="Name of the server in the settings.")] = "",
    tools: Annotated[
        list[str] | None,
        typer.Argument(help="Tools to approve, by their names here or at the server."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Approve all of the server's tools in quarantine.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Connect to the MCP servers in the settings, and show what they offer."""
    import anyio

    from server.cli.gateway.import_servers import importable
    from server.cli.gateway.inspection import approve, inspection, review
    from server.settings.sources import load

    settings = load({"data_dir": data_dir}, config_file=config)
    if action is not Action.LIST and name not in settings.servers:
        known = ", ".join(settings.servers) or "none"
        fail(f"{name!r} is not a server in the settings; there are: {known}.")
    if action is Action.APPROVE:
        check_person("Approving tools")
    with inspection(settings) as inspect:
        match action:
            case Action.LIST:
                seen = anyio.run(inspect.all)
                shown = [_facts(each, settings.servers[each.server]) for each in seen]
                if as_json:
                    print_json({"servers": shown})
                elif not shown:
                    echo(NONE_YET.format(visible(str(settings.config_file))))
                    echo("\n".join(importable()))
                for facts in () if as_json else shown:
                    state, reached = facts["state"], visible(facts["reached_by"])
                    style = COLOURS.get(state, "dim")
                    say((facts["name"], "bold"), "  ", (state, style), f"  {reached}")
                    for line in _lines(facts):
                        say(f"    {line}")
            case Action.REVIEW:
                review(anyio.run(inspect.one, name), inspect.pins)
            case Action.APPROVE:
                looked_at = anyio.run(inspect.one, name)
                approve(looked_at, inspect.pins, inspect.approvals, tools or [], every=every)


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
    if facts["tools"] is not None:
        nouns = ("tool", "resource", "prompt", *["skill"] * bool(facts["skills"]))
        offers = ", ".join(counted(facts[f"{noun}s"], noun) for noun in nouns)
        yield f"{offers}{' when it was last asked' * (facts['state'] != 'up')}"
    if quarantined := facts["quarantined"]:
        yield f"{len(quarantined)} in quarantine: {invocation()} servers review {facts['name']}"
