"""Describes what to add to clients' configuration, and detects entries that start Toolcrib."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

import tomlkit

_SUPPORT = "~/Library/Application Support" if sys.platform == "darwin" else "~/.config"


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    name: str
    where: str
    # builds the snippet from the command's absolute path and a root
    snippet: Callable[[Path, Path], str]
    marker: str  # A path that exists if the client is installed or has been used; `~` is the home

    @property
    def looked_at(self) -> str:
        """The path that exists if the client is on this machine."""
        return os.path.expanduser(self.marker)  # noqa: PTH111  # does not raise without a home

    @property
    def is_found(self) -> bool:
        """Whether the client appears to be on this machine."""
        return os.path.exists(self.looked_at)  # noqa: PTH110  # nor does this raise


def command_path() -> Path:
    """Returns the absolute path of the command, as desktop clients do not inherit the PATH."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    places = os.pathsep.join(sysconfig.get_path("scripts", scheme) for scheme in schemes)
    return Path(shutil.which("toolcrib", path=places) or sys.argv[0]).absolute()


def claude_code_command(command: Path, arguments: Sequence[str]) -> str:
    """Returns the command line that adds this server to Claude Code."""
    # --scope precedes the name: arguments after `--` belong to the server.
    return "claude mcp add --scope user toolcrib -- " + shlex.join([str(command), *arguments])


def servers_json(command: Path, arguments: Sequence[str]) -> str:
    """Returns the JSON that most clients read, and that projects have in `.mcp.json`."""
    return _json("mcpServers", {"command": str(command), "args": list(arguments)})


def _arguments(root: Path | str) -> list[str]:
    return ["serve", "--root", str(root)]


def _stdio(command: Path, root: Path | str) -> dict[str, Any]:
    return {"type": "stdio", "command": str(command), "args": _arguments(root)}


def _json(table: str, entry: dict[str, Any]) -> str:
    return json.dumps({table: {"toolcrib": entry}}, indent=2, ensure_ascii=False)


def _codex(command: Path, root: Path) -> str:
    entry = {"command": str(command), "args": _arguments(root)}
    return tomlkit.dumps({"mcp_servers": {"toolcrib": entry}})


CLIENTS = (
    Client(
        "Claude Desktop",
        "in claude_desktop_config.json (Settings > Developer > Edit Config)",
        lambda command, root: servers_json(command, _arguments(root)),
        f"{_SUPPORT}/Claude",
    ),
    Client(
        "Claude Code",
        "in a terminal",
        lambda command, root: claude_code_command(command, _arguments(root)),
        "~/.claude.json",
    ),
    Client(
        "VS Code",
        "in .vscode/mcp.json of a workspace",
        lambda command, _root: _json("servers", _stdio(command, "${workspaceFolder}")),
        f"{_SUPPORT}/Code",
    ),
    Client(
        "Cursor",
        "in ~/.cursor/mcp.json",
        lambda command, root: _json("mcpServers", _stdio(command, root)),
        "~/.cursor",
    ),
    Client("Codex", "in ~/.codex/config.toml", _codex, "~/.codex"),
)
"""The clients in the README, in its order."""


_LOOPBACK = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104  # compared, not bound
_PACKAGE = re.compile(r"toolcrib(\.exe|@\S*|\[\S*|[=<>~!]=\S*)?", re.IGNORECASE)
_RUNNERS = re.compile(
    r"(uvx?|pipx?|python[\d.]*|pypy[\d.]*|conda|poetry|hatch|rye|env|(ba|z|da)?sh|cmd|wsl|sudo"
    r"|docker|podman|npx|node)(\.exe)?",
    re.IGNORECASE,
)
"""Programs that start other programs named in their arguments."""

_FOLDERS_OF_COMMANDS = {"bin", "scripts", "shims"}


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """The address of this Toolcrib over HTTP."""

    host: str
    port: int


def is_toolcrib(entry: Mapping[str, Any], own: OwnAddress) -> bool:
    """Returns whether a server's command is Toolcrib's, or one of its addresses is ours."""
    command = entry.get("command")
    given = entry.get("args")
    texts = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
    words = [
        word for text in texts for word in text.split()
    ]  # `sh -c "toolcrib serve"` is one text
    values = [value for value in entry.values() if isinstance(value, str)]
    if any(_is_own(text, own) for text in (*values, *words)):
        return True
    if not isinstance(command, str) or not command.strip():
        return False
    program, *more = command.split() if " " in command and not words else [command]
    named = PurePath(program.replace("\\", "/"))
    if _PACKAGE.fullmatch(named.name):
        return True
    runs = bool(_RUNNERS.fullmatch(named.name))
    return any(_names_it(word, as_package=runs) for word in (*more, *words))


_COMMANDS = ("command", "cmd", "bash")
"""Keys of a program to start, in servers and in hooks."""


def starts_toolcrib(value: object, own: OwnAddress) -> bool:
    """Returns whether a server's entry, or a hook inside a value, starts Toolcrib."""
    if isinstance(value, list):
        return any(starts_toolcrib(each, own) for each in value)
    if not isinstance(value, dict):
        return False
    command = next((value[key] for key in _COMMANDS if key in value), None)
    entry = value | {"command": command}
    if isinstance(command, list) and command:  # opencode's form
        entry |= {"command": command[0], "args": command[1:]}
    return is_toolcrib(entry, own) or any(starts_toolcrib(each, own) for each in value.values())


def _names_it(word: str, *, as_package: bool) -> bool:
    path = PurePath(word.strip("'\"").replace("\\", "/"))
    if not _PACKAGE.fullmatch(path.name):
        return False
    if len(path.parts) == 1:
        return as_package
    return path.parent.name.lower() in _FOLDERS_OF_COMMANDS  # a mere folder is not


def _is_own(text: str, own: OwnAddress) -> bool:
    if not text.lower().startswith(("http://", "https://")):
        return False
    try:
        address = urlsplit(text)
        port = address.port or (443 if address.scheme == "https" else 80)
    except ValueError:
        return False
    return port == own.port and address.hostname in {*_LOOPBACK, own.host.lower()}
