"""Reads the servers in clients' configuration files, each in its client's form."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.clients.client import COMMON, Client, placed
from server.clients.json_text import JsonText
from server.clients.table import ANY, CLIENTS
from server.clients.toml_text import TomlText
from server.clients.yaml_text import YamlError, YamlText
from server.settings import SettingsError


@dataclass(frozen=True, slots=True)
class ClientFile:
    """An existing configuration file."""

    path: Path
    client: Client
    project: Path | None = None  # the project of its servers; None if they are for all projects


def files_of(
    client: Client, project: Path, environ: Mapping[str, str]
) -> tuple[list[ClientFile], list[str]]:
    """Returns a client's existing files, the project's first, as they take precedence.

    Returns:
        The files, and every path that was checked.
    """
    places: list[tuple[Path, Path | None]] = [(project / name, project) for name in client.project]
    looked_at = [str(path) for path, _ in places]
    for pattern in client.user:
        expanded = str(placed(pattern, environ))
        looked_at.append(expanded)
        parent, star, rest = expanded.partition("/*/")
        paths = sorted(Path(parent).glob(f"*/{rest}")) if star else [Path(expanded)]
        places.extend((path, None) for path in paths)
    found: dict[Path, ClientFile] = {}
    for path, of in places:
        if path.is_file():  # in the home directory, a project file may be the user's file
            owner = None if path.resolve() in found else of
            found[path.resolve()] = ClientFile(path, client, owner)
    return list(found.values()), looked_at


def client_of(path: Path, document: Mapping[str, Any]) -> Client:
    """Returns the client of a file, judged by its path, or else by its content."""
    for client in CLIENTS.values():
        for place in (*client.user, *client.project):
            if path.match(_ending(place)):
                return client
    for client in CLIENTS.values():
        if client.tables != (COMMON,) and any(keys[0] in document for keys in client.tables):
            return client
    return ANY


def _ending(place: str) -> str:
    """Returns the last parts of a path, as many as identify the client."""
    path = placed(place, {})
    if path.parent == placed("~", {}):
        return path.name
    return "/".join(path.parts[-3 if "*" in path.parts else -2 :])


LONGEST_NAME = 30
"""Maximum length of a server's name in the settings."""

_OTHER = re.compile(r"[^a-z0-9_-]+")
_SEPARATORS = re.compile(r"[-_]{2,}")

MOST_BYTES = 100_000_000
"""Size limit: Claude Code stores much else in the file with its servers."""


@dataclass(frozen=True, slots=True)
class Named:
    """A server in a client's file."""

    name: str
    entry: object
    file: Path
    client: Client
    project: Path | None = None  # the project that it is for; None if it is for all
    off: bool = False  # whether the client disables it elsewhere than in the entry


def named_servers(files: Iterable[ClientFile], project: Path) -> list[Named]:
    """Returns the servers in the files of one client; the first of a name takes precedence."""
    documents = [(file, parse(file.path)) for file in files]
    off: set[str] = set()
    for _, document in documents:
        own = ("projects", str(project))  # Claude Code's lists of a project; the last is Gemini's
        for keys in (
            (*own, "disabledMcpServers"),
            (*own, "disabledMcpjsonServers"),
            ("mcp", "excluded"),
        ):
            off.update(_strings(document, *keys))
    only = [name for _, document in documents for name in _strings(document, "mcp", "allowed")]
    return [
        Named(
            name,
            entry,
            file.path,
            file.client,
            owner,
            off=name in off or bool(only and name not in only),
        )
        for file, document in documents
        for name, entry, owner in _entries(file, document, project)
    ]


def fitted(name: str, taken: Collection[str]) -> str:
    """Returns a name that is valid in the settings and close to the client's."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    single = _SEPARATORS.sub("-", _OTHER.sub("-", plain)).strip("-_")
    whole = single[:LONGEST_NAME].rstrip("-_") or "server"
    number, fitting = 1, whole
    while fitting in taken:
        number += 1
        suffix = f"-{number}"
        fitting = whole[: LONGEST_NAME - len(suffix)].rstrip("-_") + suffix
    return fitting


_PARSERS: Mapping[str, Callable[[str], JsonText | TomlText | YamlText]] = {
    ".toml": TomlText,
    ".yaml": YamlText,
    ".yml": YamlText,
}


def parse(path: Path) -> dict[str, Any]:
    """Parses a file: TOML or YAML by its suffix, otherwise JSON with comments."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SettingsError(f"{path} is too large: it has more than {MOST_BYTES} bytes.")
        text = path.read_text(encoding="utf-8-sig")
        document = _PARSERS.get(path.suffix, JsonText)(text).values
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}.") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise SettingsError(f"{path} is not JSON: {error.msg} at {place}.") from error
    except YamlError as error:
        raise SettingsError(f"{path} is not YAML: {error}.") from error
    except (ValueError, RecursionError):  # a number with thousands of digits, or deep nesting
        raise SettingsError(
            f"{path} cannot be read: its JSON is nested too deeply or holds a number too long."
        ) from None
    if not isinstance(document, dict):
        raise SettingsError(f"{path} is not a configuration: it does not hold a JSON object.")
    return document


def _entries(
    file: ClientFile, document: Mapping[str, Any], project: Path
) -> Iterator[tuple[str, object, Path | None]]:
    """Yields the project's entries, then those for all, then Claude Code's other projects'."""
    projects = _table(document, "projects")
    ours = _table(projects, str(project), "mcpServers")
    yield from ((name, entry, project) for name, entry in ours.items())
    for keys in file.client.tables:
        for name, entry in _table(document, *keys).items():
            if (*keys, name) not in file.client.tables:  # a table inside another one
                yield name, entry, file.project
    for folder in projects:
        if folder != str(project):
            others = _table(projects, folder, "mcpServers")
            yield from ((name, entry, Path(folder)) for name, entry in others.items())


def _table(value: object, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _strings(document: Mapping[str, Any], *keys: str) -> list[str]:
    value = _table(document, *keys[:-1]).get(keys[-1])
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
