"""Clients' configuration files: TOML, or JSON with comments, and the servers that they name."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.clients.dialects import ClientFile, Dialect
from server.settings import SettingsError

_STRING = r'"(?:\\.|[^"\\\n])*+"?'  # what never ends is one too, so that no file is read for ever
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_LINE = re.compile(r"[^\n]")

LONGEST_NAME = 30
"""Characters of a server's name in the settings."""

_OTHER = re.compile(r"[^a-z0-9_-]+")
_SEPARATORS = re.compile(r"[-_]{2,}")

MOST_BYTES = 100_000_000
"""Claude Code keeps all sorts of things in the file with its servers."""


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
    """The servers of some files of one client, of which the first one wins."""
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


def fitted(name: str, taken: Collection[str]) -> str:
    """A name that the settings take, as near as possible to the one that a client has."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    single = _SEPARATORS.sub("-", _OTHER.sub("-", plain)).strip("-_")
    whole = single[:LONGEST_NAME].rstrip("-_") or "server"
    number, fitting = 1, whole
    while fitting in taken:
        number += 1
        suffix = f"-{number}"
        fitting = whole[: LONGEST_NAME - len(suffix)].rstrip("-_") + suffix
    return fitting


def parse(path: Path) -> dict[str, Any]:
    """What a configuration file says.

    Args:
        path: The file; TOML if it is called so, else JSON, with comments and trailing commas.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SettingsError(f"{path} is too large: it has more than {MOST_BYTES} bytes.")
        text = path.read_text(encoding="utf-8-sig")
        document = tomllib.loads(text) if path.suffix == ".toml" else _json(text)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}.") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise SettingsError(f"{path} is not JSON: {error.msg} at {place}.") from error
    except (ValueError, RecursionError):  # a number of thousands of digits, or nested too deeply
        raise SettingsError(
            f"{path} cannot be read: its JSON is nested too deeply or holds a number too long."
        ) from None
    if not isinstance(document, dict):
        raise SettingsError(f"{path} is not a configuration: it does not hold a JSON object.")
    return document


def _json(text: str) -> object:
    """Comments and trailing commas become blanks, so that errors are where they were."""
    if not text.strip():
        return {}  # what some clients leave behind
    uncommented = _COMMENT.sub(_blank, text)
    return json.loads(_TRAILING_COMMA.sub(_blank, uncommented))


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else _LINE.sub(" ", found[0])


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
