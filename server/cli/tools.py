"""`toolcrib tools`, `skills` and `convert`: show tools, skills, and what functions become."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from server.cli.terminal.options import (
    ConfigOption,
    DataDirOption,
    FunctionsOption,
    JsonOption,
    RootOption,
)
from server.cli.terminal.screen import console, echo, print_json, print_line, say, say_entry
from server.mcp.visible import visible, visible_lines
from tools.core.errors import NotFoundError
from tools.core.spec import ToolSpec

if TYPE_CHECKING:
    from storage.database import Database
    from tools.agent.skillfiles.skill import Skill
    from tools.agent.skillfiles.skills import LeftOut
    from tools.core.offered import Offered
    from tools.core.registry import ToolRegistry
    from tools.core.spec import ToolSpec


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
    from tools.retrieval.models import first_sentence

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
        shown = [_tool_json(spec) for spec in specs]
        print_json(shown if name is None else shown[0])
        return
    for spec in specs:
        also = f", also {', '.join(spec.aliases)}" if spec.aliases else ""
        traits = f"  {spec.scope}: {', '.join(sorted(spec.effects))}{also}"
        say_entry((spec.name, "bold"), (traits, "dim"), text=first_sentence(spec.description))


def _print_or_remove(database: Database, user_id: str, name: str | None, *, remove: bool) -> None:
    from storage.catalog.created_tools import CreatedToolStore

    if name is None:
        raise typer.BadParameter("name the tool")
    store = CreatedToolStore(database)
    found = store.remove(user_id, name) if remove else store.get(user_id, name)
    if found is None:
        raise NotFoundError(
            f"No agent has created a tool {name!r}.", next_actions=["`toolcrib tools` lists all."]
        )
    if remove:
        say(f"Removed {found.name}. Its source is kept in the record.")
        return
    made = datetime.fromtimestamp(found.created_at).astimezone().isoformat(" ", "minutes")
    say((f"# {found.name}, version {found.version}, by {found.client}, {made}", "dim"))
    echo(visible_lines(found.source), nl=False)


def _tool_json(spec: ToolSpec) -> dict[str, object]:
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


def skills(
    name: Annotated[str | None, typer.Argument(help="Show this skill and its files.")] = None,
    as_json: JsonOption = False,
    root: RootOption = None,
    config: ConfigOption = None,
) -> None:
    """List the skills and where they were found, or show one; problems go to stderr."""
    from server.composition.catalogue import make_skills
    from server.settings.sources import load
    from storage.models import Identity

    settings = load({"root": root}, config_file=config)
    identity = Identity(user_id=settings.identity.user_id)
    every = make_skills(settings, os.environ)
    if name is not None:
        _show_skill(every.find(name, identity), as_json=as_json)
        return
    found = every.seen_by(identity)
    if as_json:
        print_json([_skill_json(each) for each in found])
    for skill in () if as_json else found:
        place = f"  {visible(skill.place.shown)}"
        say_entry((visible(skill.path), "bold"), (place, "dim"), text=skill.description)
    _print_problems(found, every.left_out())


def _skill_json(skill: Skill) -> dict[str, object]:
    return {
        "name": skill.path,
        "description": skill.description,
        "source": skill.place.shown,
        "directory": skill.where,
        "problems": list(skill.problems),
        "frontmatter": skill.frontmatter,
    }


def _show_skill(skill: Skill, *, as_json: bool) -> None:
    from tools.agent.skillfiles.skill import MAIN

    files, too_many = skill.listed()
    if as_json:
        listed = [{"path": each.path, "size": each.size} for each in files]
        print_json({**_skill_json(skill), "files": listed})
        return
    say((visible(skill.path), "bold"), (f"  {visible(skill.where)}", "dim"))
    for each in files:
        say(f"      {visible(each.path)}", (f"  {each.size:,} bytes", "dim"))
    if too_many:
        print_line(console(), "It has more files or bytes than a skill may have.", "yellow")
    say("")
    echo(visible_lines(skill.text(MAIN)))
    _print_problems([skill], ())


def _print_problems(found: Sequence[Skill], left_out: Sequence[LeftOut]) -> None:
    for skill in found:
        for problem in skill.problems:
            echo(f"{visible(skill.path)}: {visible(problem)}", err=True)
    for each in left_out:
        echo(f"{visible(each.where)} is left out: {visible(each.why)}", err=True)


class Form(StrEnum):
    """Who the definition is for."""

    MCP = "mcp"
    FUNCTION_CALLING = "function-calling"


def convert(
    file: Annotated[
        str, typer.Argument(metavar="FILE[:NAME]", help="The file, or one function in it.")
    ],
    form: Annotated[
        Form, typer.Option(help="The definition as MCP lists it, or as model APIs take it.")
    ] = Form.MCP,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Print what a Python file's functions become; exits with 1 if one cannot be converted."""
    from server import logs
    from server.composition.tools import function_files
    from server.settings.sources import load
    from tools.core.registry import ToolRegistry

    path, name = _split(file)
    if not path.exists():
        raise typer.BadParameter(f"{str(path)!r} does not exist.", param_hint="FILE")
    flags = {"root": root, "data_dir": data_dir, "functions.paths": [path]}
    registry = ToolRegistry()
    logs.show()  # progress of an installation, and problems
    files = function_files(load(flags, config_file=config), os.environ, registry)
    anyio.run(files.load_once)
    if name is not None:
        print_json(_definition(_find_tool(registry, name, path), form))
        return
    shown = [_definition(spec, form) for spec in registry.specs()]
    if form is Form.MCP:
        shown += _offered_definitions(files.offered)
    if not shown and not files.problems:
        echo(f"{path} has no public function of its own, so there is nothing to convert.", err=True)
    if shown:
        print_json(shown)
    if files.problems or not shown:
        sys.exit(1)


def _split(file: str) -> tuple[Path, str | None]:
    path, colon, name = file.rpartition(":")
    return (Path(path), name) if colon and not Path(file).exists() else (Path(file), None)


def _find_tool(registry: ToolRegistry, name: str, path: Path) -> ToolSpec:
    from tools.core.errors import UnknownToolError

    try:
        return registry.find(name)
    except UnknownToolError as error:
        raise UnknownToolError(
            f"{path} has no tool called {name!r}.", suggestions=error.suggestions
        ) from error


def _definition(spec: ToolSpec, form: Form) -> dict[str, Any]:
    from server.mcp.definitions import describe

    if form is Form.FUNCTION_CALLING:
        return spec.function_calling()
    listed = describe(spec).model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**listed, "outputSchema": spec.output_schema} if spec.output_schema else listed


def _offered_definitions(offered: Offered) -> list[dict[str, Any]]:
    """Returns resources, templates and prompts as MCP lists them."""
    from server.mcp.browsing.functions import listed_prompt, listed_resource, listed_template

    resources = offered.resources.values()
    listed = [
        *(listed_resource(each) for each in resources if not each.is_template),
        *(listed_template(each) for each in resources if each.is_template),
        *map(listed_prompt, offered.prompts.values()),
    ]
    return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in listed]
