"""Describes where MCP clients keep their configuration, and what to add to it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomlkit

_SUPPORT = "~/Library/Application Support" if sys.platform == "darwin" else "~/.config"


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client.

    Attributes:
        name: Its display name.
        where: Where to put or run the snippet.
        snippet: Builds the snippet from the command's absolute path and a root.
        marker: A path that exists if the client is installed or has been used; `~` is the home.
    """

    name: str
    where: str
    snippet: Callable[[Path, Path], str]
    marker: str

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
    entry = {"command": str(command), "args": list(arguments)}
    return _json({"mcpServers": {"toolcrib": entry}})


def _claude_desktop(command: Path, root: Path) -> str:
    return servers_json(command, _arguments(root))


def _claude_code(command: Path, root: Path) -> str:
    return claude_code_command(command, _arguments(root))


def _vscode(command: Path, _root: Path) -> str:
    entry = {"type": "stdio", "command": str(command), "args": _arguments("${workspaceFolder}")}
    return _json({"servers": {"toolcrib": entry}})


def _cursor(command: Path, root: Path) -> str:
    entry = {"type": "stdio", "command": str(command), "args": _arguments(root)}
    return _json({"mcpServers": {"toolcrib": entry}})


def _codex(command: Path, root: Path) -> str:
    entry = {"command": str(command), "args": _arguments(root)}
    return tomlkit.dumps({"mcp_servers": {"toolcrib": entry}})


def _arguments(root: Path | str) -> list[str]:
    return ["serve", "--root", str(root)]


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


CLIENTS = (
    Client(
        "Claude Desktop",
        "in claude_desktop_config.json (Settings > Developer > Edit Config)",
        _claude_desktop,
        f"{_SUPPORT}/Claude",
    ),
    Client("Claude Code", "in a terminal", _claude_code, "~/.claude.json"),
    Client("VS Code", "in .vscode/mcp.json of a workspace", _vscode, f"{_SUPPORT}/Code"),
    Client("Cursor", "in ~/.cursor/mcp.json", _cursor, "~/.cursor"),
    Client("Codex", "in ~/.codex/config.toml", _codex, "~/.codex"),
)
"""The clients in the README, in its order."""
