"""What there is to import servers from: the clients whose configuration is on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from server.cli.invocation import invocation
from server.clients.dialects import DIALECTS, ClientFile, files_of
from server.clients.tables import named_servers
from server.mcp.visible import visible
from server.settings import SettingsError
from tools.answers.directory import counted

__all__ = ["importable"]


def importable() -> Iterator[str]:
    """Returns lines that name each client with a configuration here, and what imports from it."""
    project = Path.cwd()
    command = f"{invocation()} import servers --from"
    found = {name: files_of(each, project, os.environ)[0] for name, each in DIALECTS.items()}
    if any(found.values()):
        yield "Clients found on this machine, and the command that imports their servers:"
    else:
        titles = ", ".join(each.title for each in DIALECTS.values())
        yield f"No configuration of a client was found on this machine (known are {titles})."
    for name, files in found.items():
        for file in files:
            yield visible(f"  {file.dialect.title}: {_held(file, project)}")
        if files:
            yield f"      {command} {name}"
    yield "A configuration file that is elsewhere is named by its path:"
    yield f"      {command} FILE"


def _held(file: ClientFile, project: Path) -> str:
    try:
        count = len(named_servers([file], project))
    except SettingsError as error:
        return str(error)
    return f"{counted(count, 'server')} in {file.path}"
