"""The servers that configuration files name, before anything is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.clients.dialects import ClientFile, Dialect
from server.clients.parsing import parse

__all__ = ["Named", "named_servers"]


@dataclass(frozen=True, slots=True)
class Named:
    """A server that a client knows.

    Attributes:
        name: What the client calls it.
        entry: What stands under that name.
        file: Where.
        dialect: How it is written there.
        project: The folder that it is for; None where it is for all.
        off: Whether the client was told not to use it, elsewhere than in the entry.
    """

    name: str
    entry: object
    file: Path
    dialect: Dialect
    project: Path | None = None
    off: bool = False


def named_servers(files: Iterable[ClientFile], project: Path) -> list[Named]:
    """The servers of some files of one client.

    Args:
        files: The files, the one that wins first.
        project: The folder of the project that the client would work in.

    Raises:
        SettingsError: If a file cannot be read.
    """
    documents = [(file, parse(file.path)) for file in files]
    off = {name for _, document in documents for name in _turned_off(document, project)}
    only = [name for _, document in documents for name in _strings(document, "mcp", "allowed")]
    return [
        Named(
            name,
            entry,
            file.path,
            file.dialect,
            owner,
            off=name in off or bool(only and name not in only),
        )
        for file, document in documents
        for name, entry, owner in _entries(file, document, project)
    ]


def _entries(
    file: ClientFile, document: Mapping[str, Any], project: Path
) -> Iterator[tuple[str, object, Path | None]]:
    """Those of the project first, then those for all, then those of Claude Code's others."""
    projects = _table(document, "projects")
    ours = _table(projects, str(project), "mcpServers")
    yield from ((name, entry, project) for name, entry in ours.items())
    for keys in file.dialect.tables:
        yield from ((name, entry, file.project) for name, entry in _table(document, *keys).items())
    for folder in projects:
        if folder != str(project):
            others = _table(projects, folder, "mcpServers")
            yield from ((name, entry, Path(folder)) for name, entry in others.items())


def _turned_off(document: Mapping[str, Any], project: Path) -> Iterator[str]:
    """Claude Code's lists of a project, and Gemini's."""
    for key in ("disabledMcpServers", "disabledMcpjsonServers"):
        yield from _strings(document, "projects", str(project), key)
    yield from _strings(document, "mcp", "excluded")


def _table(value: object, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _strings(document: Mapping[str, Any], *keys: str) -> list[str]:
    value = _table(document, *keys[:-1]).get(keys[-1])
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
