"""Reads the servers in clients' configuration files, each in its client's dialect."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.settings import SettingsError

COMMON = (("mcpServers",),)
"""The table that many clients use: it identifies none of them."""

_MILLISECOND = 0.001


@dataclass(frozen=True, slots=True)
class Dialect:
    """The file locations and format of one client."""

    name: str
    title: str
    # its files for all projects; placeholders such as `{config}` are filled in on lookup
    user: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    # key paths to the table of servers; the first that exists counts
    tables: tuple[tuple[str, ...], ...] = COMMON
    # unit of a server's `timeout` in seconds; None if undocumented
    timeout_unit: float | None = None
    bare_variables: bool = False  # whether `$NAME` is a variable in addition to `${NAME}`


@dataclass(frozen=True, slots=True)
class ClientFile:
    """An existing configuration file."""

    path: Path
    dialect: Dialect
    project: Path | None = None  # the project of its servers; None if they are for all projects


_EDITIONS = ("Code", "Code - Insiders", "VSCodium")

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "claude-desktop",
            "Claude Desktop",
            user=("{support}/Claude/claude_desktop_config.json",),
        ),
        Dialect(
            "claude-code",
            "Claude Code",
            user=("{claude}/.claude.json",),
            project=(".mcp.json",),
            timeout_unit=_MILLISECOND,
        ),
        Dialect(
            "vscode",
            "VS Code",
            user=tuple(
                f"{{support}}/{edition}/User/{file}"
                for edition in _EDITIONS
                for file in ("mcp.json", "profiles/*/mcp.json", "settings.json")
            ),
            project=(".vscode/mcp.json", ".vscode/settings.json"),
            tables=(("servers",), ("mcp", "servers")),
        ),
        Dialect("cursor", "Cursor", user=("~/.cursor/mcp.json",), project=(".cursor/mcp.json",)),
        Dialect(
            "codex",
            "Codex",
            user=("{codex}/config.toml",),
            project=(".codex/config.toml",),
            tables=(("mcp_servers",),),
        ),
        Dialect(
            "windsurf",
            "Windsurf",
            user=("~/.codeium/windsurf/mcp_config.json", "~/.codeium/mcp_config.json"),
        ),
        Dialect(
            "gemini",
            "Gemini CLI",
            user=("~/.gemini/settings.json",),
            project=(".gemini/settings.json",),
            timeout_unit=_MILLISECOND,
            bare_variables=True,
        ),
        Dialect(
            "zed",
            "Zed",
            user=("{config}/zed/settings.json",),
            project=(".zed/settings.json",),
            tables=(("context_servers",),),
            timeout_unit=1,
        ),
    )
}
"""The clients by their names for `--from`."""

ANY = Dialect(
    "",
    "the client",
    tables=tuple(dict.fromkeys(keys for dialect in DIALECTS.values() for keys in dialect.tables)),
)
"""The dialect of a file that matches no client."""


def files_of(
    dialect: Dialect, project: Path, environ: Mapping[str, str]
) -> tuple[list[ClientFile], list[str]]:
    """Returns a client's existing files, the project's first, as they take precedence.

    Returns:
        The files, and every path that was checked.
    """
    places: list[tuple[Path, Path | None]] = [(project / name, project) for name in dialect.project]
    looked_at = [str(path) for path, _ in places]
    for pattern in dialect.user:
        expanded = os.path.expanduser(pattern.format(**_folders(environ)))  # noqa: PTH111  # a text yet
        looked_at.append(expanded)
        parent, star, rest = expanded.partition("/*/")
        paths = sorted(Path(parent).glob(f"*/{rest}")) if star else [Path(expanded)]
        places.extend((path, None) for path in paths)
    found: dict[Path, ClientFile] = {}
    for path, of in places:
        if path.is_file():  # in the home directory, a project file may be the user's file
            owner = None if path.resolve() in found else of
            found[path.resolve()] = ClientFile(path, dialect, owner)
    return list(found.values()), looked_at


def dialect_of(path: Path, document: Mapping[str, Any]) -> Dialect:
    """Returns the dialect of a file, judged by its path, or else by its content."""
    for dialect in DIALECTS.values():
        for place in (*dialect.user, *dialect.project):
            if path.match(_ending(place)):
                return dialect
    for dialect in DIALECTS.values():
        if dialect.tables != COMMON and any(keys[0] in document for keys in dialect.tables):
            return dialect
    return ANY


def _ending(place: str) -> str:
    """Returns the last two parts of a path, or only the last if the folder varies."""
    *_, folder, name = place.split("/") if "/" in place else ("", place)
    return name if folder in {"", "*"} or folder.startswith("{") else f"{folder}/{name}"


def _folders(environ: Mapping[str, str]) -> dict[str, str]:
    config = environ.get("XDG_CONFIG_HOME") or "~/.config"
    mac = sys.platform == "darwin"
    return {
        "config": "~/.config" if mac else config,
        "support": "~/Library/Application Support" if mac else config,
        "claude": environ.get("CLAUDE_CONFIG_DIR") or "~",
        "codex": environ.get("CODEX_HOME") or "~/.codex",
    }


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
    """A server in a client's file."""

    name: str
    entry: object
    file: Path
    dialect: Dialect
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
    """Parses a file: TOML by its suffix, otherwise JSON with comments and trailing commas."""
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


def _table(value: object, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _strings(document: Mapping[str, Any], *keys: str) -> list[str]:
    value = _table(document, *keys[:-1]).get(keys[-1])
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
