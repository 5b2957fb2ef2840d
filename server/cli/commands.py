"""The commands of `toolcrib`: each in its own module, imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from server.cli.terminal.screen import echo

COMMANDS = {
    "serve": "serve.serve",
    "install": "clients.install.install",
    "uninstall": "clients.install.uninstall",
    "demo": "demo.demo",
    "call": "call.call",
    "tools": "tools.tools",
    "skills": "tools.skills",
    "convert": "tools.convert",
    "import": "data.import_.import_",
    "watch": "data.watch.watch",
    "query": "search.query",
    "data": "datasets.data",
    "index": "index.index",
    "search": "search.search",
    "delete": "data.keeping.delete",
    "secret": "safety.secret.secret",
    "servers": "gateway.servers.servers",
    "approvals": "safety.approvals.approvals",
    "policy": "safety.policy.policy",
    "log": "safety.log.log",
    "memory": "memory.memory",
    "undo": "safety.undo.undo",
    "worktrees": "safety.undo.worktrees",
    "export": "data.keeping.export",
    "backup": "data.keeping.backup",
    "restore": "data.keeping.restore",
    "rebuild": "data.keeping.rebuild",
    "status": "status.status",
    "doctor": "checks.doctor.doctor",
    "config": "config.config",
}
"""In the order of the help: the function or group of each command, under `server.cli`."""

ALIASES = {"add": "import"}
"""Other names of commands, left out of the help."""


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when looked up."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # typer's command type is private
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            raise KeyError(name)
        module, _, function = COMMANDS[name].rpartition(".")
        found = getattr(importlib.import_module(f"server.cli.{module}"), function)
        if not isinstance(found, typer.Typer):  # a command without commands of its own
            single = typer.Typer(add_completion=False)
            single.command(name)(found)
            found = single
        command = typer.main.get_command(found)
        command.name = name  # a group has no name by itself, and would be listed without one
        _hide_flag_types(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _hide_flag_types(command: Any) -> None:  # noqa: ANN401  # typer's command type is private
    """Leaves `<bool>` out of the help of flags, where it reads as a value to type."""
    _hide_flags(command.get_params(typer.Context(command)))
    for inner in getattr(command, "commands", {}).values():
        _hide_flag_types(inner)


def _hide_flags(params: Iterable[Any]) -> None:
    for each in params:
        if getattr(each, "is_flag", False):
            each.metavar = ""


class _Group(TyperGroup):
    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401  # typer's, passed on
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # only ever read

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # typer's context type is private
        """Returns the options, among them those for completion, which are added late."""
        params = super().get_params(ctx)
        _hide_flags(params)
        return params


app = typer.Typer(cls=_Group, invoke_without_command=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"toolcrib {version('toolcrib')}")
        raise typer.Exit


@app.callback()
def toolcrib(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """The tool crib for AI agents: tools and context over the Model Context Protocol."""
    if context.invoked_subcommand is not None:
        return
    if sys.stdout.isatty():
        from server.cli.status import greet

        greet()
    else:
        echo(context.get_help())
