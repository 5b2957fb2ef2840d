"""`toolcrib convert`: shows authors what their function file becomes."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo, print_json

if TYPE_CHECKING:
    from tools.core.browsing.offered import Offered
    from tools.core.registry import ToolRegistry
    from tools.core.spec import ToolSpec


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
    from server.composition.registered import function_files
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
    from server.mcp.browsing.offered_prompts import listed_prompt
    from server.mcp.browsing.offered_resources import listed_resource, listed_template

    resources = offered.resources.values()
    listed = [
        *(listed_resource(each) for each in resources if not each.is_template),
        *(listed_template(each) for each in resources if each.is_template),
        *map(listed_prompt, offered.prompts.values()),
    ]
    return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in listed]
