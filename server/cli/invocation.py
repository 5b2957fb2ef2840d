"""Finds how the user types this command, for advice in messages."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.settings import Settings

NAME = "toolcrib"


def invocation() -> str:
    """Returns the command as typed here: its name, or else its path."""
    running = _running()
    found = shutil.which(NAME)
    # `uv run` puts its environment on the PATH, for this process alone.
    is_lasting = "UV_RUN_RECURSION_DEPTH" not in os.environ
    if found and is_lasting and _is_same(Path(found), running):
        return NAME
    return shlex.quote(_shortest(running))


def invocation_elsewhere(settings: Settings) -> str:
    """Returns the command for use on the same data from any terminal."""
    from server.settings.settings import DEFAULT_SOURCE
    from server.settings_file import usual_path

    variables = {}
    if settings.config_file not in {None, usual_path()}:
        variables["TOOLCRIB_CONFIG"] = settings.config_file
    if settings.source_of("data_dir") not in {DEFAULT_SOURCE, str(settings.config_file)}:
        variables["TOOLCRIB_DATA_DIR"] = settings.data_dir
    given = [f"{name}={shlex.quote(str(value))}" for name, value in variables.items()]
    command = invocation()
    if command != NAME:
        command = shlex.quote(str(_running()))
    return " ".join([*given, command])


def _running() -> Path:
    given = Path(sys.argv[0])
    if given.name == NAME and given.is_file():
        return given.absolute()
    from server.clients.locations import command_path  # unused when the command itself runs

    return command_path()


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _shortest(path: Path) -> str:
    """Returns a path relative to the working directory, with a slash to bypass the PATH."""
    try:
        below = path.relative_to(Path.cwd())
    except (OSError, ValueError):  # the directory is gone, or the path leads elsewhere
        return str(path)
    return str(below) if len(below.parts) > 1 else f"./{below}"
