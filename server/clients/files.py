"""Reads clients' configuration files, TOML or JSON with comments, and their servers."""

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

_STRING = r'"(?:\\.|[^"\\\n])*+"?'  # also matches unterminated ones, to stay linear
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_LINE = re.compile(r"[^\n]")

LONGEST_NAME = 30
"""Maximum length of a server's name in the settings."""

_OTHER = re.compile(r"[^a-z0-9_-]+")
_SEPARATORS = re.compile(r"[-_]{2,}")

MOST_BYTES = 100_000_000
"""Size limit: Claude Code stores much else in the file with its servers."""


@dataclass(frozen=True, slots=True)
class Named:
    """A server in a client's file.

    Attributes:
        name: Its name in the client.
        entry: The entry under that name.
        file: The file.
        dialect: The format of the file.
        project: The project that it is for; None if it is for all.
        off: Whether the client disables it elsewhere than in the entry.
    """

    name: str
    entry: object
    file: Path
    dialect: Dialect
    project: Path | None = None
    off: bool = False


def named_servers(files: Iterable[ClientFile], project: Path) -> list[Named]:
    """Returns the servers in the files of one client; the first of a name takes precedence."""
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


def parse(path: Path) -> dict[str, Any]:
    """Parses a configuration file.

    Args:
        path: The file: TOML by its suffix, otherwise JSON with comments and trailing commas.
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
    except (ValueError, RecursionError):  # a number with thousands of digits, or deep nesting
        raise SettingsError(
            f"{path} cannot be read: its JSON is nested too deeply or holds a number too long."
        ) from None
    if not isinstance(document, dict):
        raise SettingsError(f"{path} is not a configuration: it does not hold a JSON object.")
    return document


def _json(text: str) -> object:
    """Parses JSON, blanking comments and trailing commas so that error positions stay correct."""
    if not text.strip():
        return {}  # some clients leave empty files
    uncommented = _COMMENT.sub(_blank, text)
    return json.loads(_TRAILING_COMMA.sub(_blank, uncommented))


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else _LINE.sub(" ", found[0])


def _entries(
    file: ClientFile, document: Mapping[str, Any], project: Path
) -> Iterator[tuple[str, object, Path | None]]:
    """Yields the project's entries, then those for all, then Claude Code's other projects'."""
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
    """Yields disabled servers from Claude Code's lists of a project, and from Gemini's."""
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
