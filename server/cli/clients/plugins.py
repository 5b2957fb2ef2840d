"""Adds and removes our plugin with a client's own commands."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from server.cli.invocation import invocation
from server.cli.terminal.screen import echo, fail, wrapped
from server.clients.plugins import AUTHOR, NAME, PLUGINS, SUMMARY, plugin_files
from server.mcp.visible import visible_lines
from storage.keeping.atomic import atomic_file

if TYPE_CHECKING:
    from server.clients.client import Client
    from server.clients.launch import Wanted
    from server.clients.pieces import Piece

FOLDER = "plugins"
"""The folder in the data directory with the plugins that were added, one folder a client."""

COMMAND_SECONDS = 120
"""Time limit of a client's command."""


def add_plugins(
    clients: Sequence[Client],
    wanted: Wanted,
    data_dir: Path,
    agreed: Callable[[int], bool],
    hooks: Callable[[Client], Iterable[Piece]],
) -> bool:
    """Shows the commands that add the plugins, and runs them if that is agreed."""
    files: dict[Path, str] = {}
    for client in clients:
        _check(client, wanted)
        about = {"name": NAME, "version": version(NAME), "description": SUMMARY, "author": AUTHOR}
        folder = data_dir / FOLDER / client.name
        made = plugin_files(client.name, about, wanted.launch(client), hooks(client))
        files |= {folder / path: text for path, text in made.items()}
        echo(wrapped(f"{client.title}: these commands add a plugin of {len(made)} files."))
        for command in PLUGINS[client.name].commands(folder, adds=True):
            echo(f"  {shlex.join(command)}")
    if not agreed(len(files)):
        return False
    for client in clients:
        remove_plugin(client, data_dir)
    for path, text in files.items():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(path, replace=True) as temporary:
            temporary.write_text(text, encoding="utf-8")
    for client in clients:
        folder = data_dir / FOLDER / client.name
        for command in PLUGINS[client.name].commands(folder, adds=True):
            if problem := _run(command):
                remove_plugin(client, data_dir)
                fail(visible_lines(f"`{shlex.join(command)}` failed: {problem}"))
    return True


def added_plugins(clients: Iterable[Client], data_dir: Path) -> list[Client]:
    """Returns the clients that have our plugin."""
    return [each for each in clients if (data_dir / FOLDER / each.name).is_dir()]


def clients_without(clients: Iterable[Client], data_dir: Path) -> list[Client]:
    """Returns the clients that need an entry; reports those that have our plugin."""
    added = added_plugins(clients, data_dir)
    for client in added:
        echo(f"{client.title}: has the plugin of Toolcrib, and is left as it is")
    return [each for each in clients if each not in added]


def remove_plugin(client: Client, data_dir: Path) -> bool:
    """Removes the plugin of a client, if it has one; returns False if a command failed."""
    folder = data_dir / FOLDER / client.name
    if not folder.is_dir():
        return True
    is_removed = True
    for command in PLUGINS[client.name].commands(folder, adds=False):
        if problem := _run(command):
            is_removed = False
            echo(visible_lines(f"`{shlex.join(command)}` failed: {problem}"), err=True)
    shutil.rmtree(folder)
    echo(
        f"Removed the plugin of {client.title}."
        if is_removed
        else f"{client.title} may still have the plugin."
    )
    return is_removed


def _check(client: Client, wanted: Wanted) -> None:
    if wanted.project is not None:
        raise typer.BadParameter("Plugins are for all projects: leave out --project.")
    if client.name not in PLUGINS:
        raise typer.BadParameter(
            f"{client.title} has no plugins; these have: {', '.join(PLUGINS)}."
        )
    program = PLUGINS[client.name].program
    if shutil.which(program) is None:
        fail(f"{program} is not on the PATH. Install {client.title} first, or leave out --plugin.")
    if wanted.configured(client):
        fail(
            f"{client.title} has Toolcrib already, and a plugin would add its tools twice."
            f" Run `{invocation()} uninstall {client.name}` first."
        )


def _run(command: Sequence[str]) -> str:
    """Runs a client's command; returns what it printed if it failed."""
    try:
        done = subprocess.run(  # noqa: S603  # a command of the table, agreed to by the user
            command,
            input="y\n",  # Gemini CLI asks whether to trust the folder that we have just made
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
            timeout=COMMAND_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:  # it is gone, or asks a question
        return str(error)
    return (done.stdout.strip() or f"exit code {done.returncode}") if done.returncode else ""
