"""The commands of `toolcrib`: each is a module of its own, imported when it is used."""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

__all__ = ["COMMANDS", "app"]

COMMANDS = (
    "serve",
    "demo",
    "call",
    "tools",
    "convert",
    "import",
    "watch",
    "query",
    "index",
    "search",
    "delete",
    "servers",
    "approvals",
    "policy",
    "log",
    "export",
    "backup",
    "restore",
    "rebuild",
    "doctor",
    "config",
)
"""In the order of the help; each is a function of that name in `server.cli.NAME`, with an
underscore behind a word of Python."""

ALIASES = {"add": "import"}
"""Other names of commands, which the help does not list."""


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # typer's command type is private
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            raise KeyError(name)
        function = f"{name}_" if keyword.iskeyword(name) else name
        module = importlib.import_module(f"server.cli.{function}")
        single = typer.Typer(add_completion=False)
        single.command(name)(getattr(module, function))
        return typer.main.get_command(single)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401  # typer's, passed on
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # only ever read


app = typer.Typer(
    cls=_Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolcrib {version('toolcrib')}")
        raise typer.Exit


@app.callback()
def toolcrib(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """The tool crib for AI agents: tools and context over the Model Context Protocol."""
