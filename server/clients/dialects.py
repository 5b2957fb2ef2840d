"""Dialects: where each MCP client keeps its servers, and in which format."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMON = (("mcpServers",),)
"""The table that many clients use: it identifies none of them."""

_MILLISECOND = 0.001


@dataclass(frozen=True, slots=True)
class Dialect:
    """The file locations and format of one client.

    Attributes:
        name: Its name for `--from`.
        title: Its display name.
        user: Its files for all projects; placeholders such as `{config}` are filled in on lookup.
        project: Its files in a project folder.
        tables: Key paths to the table of servers; the first that exists counts.
        timeout_unit: Unit of a server's `timeout` in seconds; None if undocumented.
        bare_variables: Whether `$NAME` is a variable in addition to `${NAME}`.
    """

    name: str
    title: str
    user: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    tables: tuple[tuple[str, ...], ...] = COMMON
    timeout_unit: float | None = None
    bare_variables: bool = False


@dataclass(frozen=True, slots=True)
class ClientFile:
    """An existing configuration file.

    Attributes:
        path: Its path.
        dialect: Its format.
        project: The project of its servers; None if they are for all projects.
    """

    path: Path
    dialect: Dialect
    project: Path | None = None


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
        places.extend((path, None) for path in _matching(expanded))
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


def _matching(pattern: str) -> Iterator[Path]:
    parent, star, rest = pattern.partition("/*/")
    yield from sorted(Path(parent).glob(f"*/{rest}")) if star else [Path(pattern)]


def _folders(environ: Mapping[str, str]) -> dict[str, str]:
    config = environ.get("XDG_CONFIG_HOME") or "~/.config"
    mac = sys.platform == "darwin"
    return {
        "config": "~/.config" if mac else config,
        "support": "~/Library/Application Support" if mac else config,
        "claude": environ.get("CLAUDE_CONFIG_DIR") or "~",
        "codex": environ.get("CODEX_HOME") or "~/.codex",
    }
