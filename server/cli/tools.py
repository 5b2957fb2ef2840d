"""`toolcrib tools`: lists the callable tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.terminal.options import (
    ConfigOption,
    DataDirOption,
    FunctionsOption,
    JsonOption,
    RootOption,
)
from server.cli.terminal.screen import echo, print_json, say
from server.mcp.visible import visible, visible_lines
from tools.core.errors import NotFoundError
from tools.core.spec import ToolSpec

if TYPE_CHECKING:
    from storage.database import Database

DESCRIPTION_CHARACTERS = 300
"""Length of a tool's description in the list; a named tool is shown in full."""


def tools(  # noqa: PLR0913, PLR0917  # one parameter an option
    name: Annotated[str | None, typer.Argument(help="Show this tool's schemas.")] = None,
    as_json: JsonOption = False,
    source: Annotated[
        bool, typer.Option("--source", help="Print the source of a tool that an agent created.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove a tool that an agent created.")
    ] = False,
    functions: FunctionsOption = None,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """List the tools, or show one; problems with function files go to stderr.

    Tools of other servers are listed as they were at the last connection.
    """
    from server import logs
    from server.cli.opened import record, tools_of
    from server.settings.sources import load

    logs.show()
    flags = {"root": root, "data_dir": data_dir, "functions.paths": functions or None}
    settings = load(flags, config_file=config)
    if source or remove:
        with record(data_dir, config) as database:
            _print_or_remove(database, settings.identity.user_id, name, remove=remove)
        return
    registry = tools_of(settings, name)
    found = registry.specs() if name is None else (registry.find(name),)
    specs = [replace(spec, description=registry.description_of(spec)) for spec in found]
    if as_json or name is not None:
        shown = [_as_json(spec) for spec in specs]
        print_json(shown if name is None else shown[0])
    else:
        _print(specs)


def _print_or_remove(database: Database, user_id: str, name: str | None, *, remove: bool) -> None:
    from storage.catalog.created_tools import CreatedToolStore

    if name is None:
        raise typer.BadParameter("name the tool")
    store = CreatedToolStore(database)
    found = store.remove(user_id, name) if remove else store.get(user_id, name)
    if found is None:
        raise NotFoundError(
            f"No agent has created a tool {name!r}.",
            next_actions=["`toolcrib tools` lists all."],
        )
    if remove:
        say(f"Removed {found.name}. Its source is kept in the record.")
        return
    made = datetime.fromtimestamp(found.created_at).astimezone().isoformat(" ", "minutes")
    say((f"# {found.name}, version {found.version}, by {found.client}, {made}", "dim"))
    echo(visible_lines(found.source), nl=False)


def _as_json(spec: ToolSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.details or spec.description,
        "scope": spec.scope,
        "effects": sorted(spec.effects),
        "aliases": list(spec.aliases),
        "tags": list(spec.tags),
        "source": spec.source,
        "input_schema": spec.input_schema,
        "output_schema": spec.output_schema,
    }


def _print(specs: Sequence[ToolSpec]) -> None:
    from tools.answers.tool_cards import clipped_line, summary

    for spec in specs:
        also = f", also {', '.join(spec.aliases)}" if spec.aliases else ""
        traits = f"  {spec.scope}: {', '.join(sorted(spec.effects))}{also}"
        say((spec.name, "bold"), (traits, "dim"))
        said = clipped_line(visible(summary(spec.description)), DESCRIPTION_CHARACTERS)
        if said:
            say(f"      {said}")
