"""MCP clients: where each keeps its configuration, and what to put there."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CLIENTS", "Client", "command_path"]


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client.

    Attributes:
        name: Name for people.
        config: The file it reads, per user or per project.
        snippet: What to put there (or to run), given the command's absolute path and a root.
        marker: What exists where the client is installed or has been used.
    """

    name: str
    config: str
    snippet: Callable[[Path, Path], str]
    marker: Path

    @property
    def found(self) -> bool:
        """Whether the client seems to be on this machine."""
        return self.marker.exists()


def command_path() -> Path:
    """The installed command; written out in full, because clients with a window have no PATH."""
    return Path(sysconfig.get_path("scripts"), "toolcrib")


def _servers(command: Path, root: Path) -> str:
    entry = {"command": str(command), "args": ["serve", "--root", str(root)]}
    return json.dumps({"mcpServers": {"toolcrib": entry}}, indent=2)


def _vscode(command: Path, _root: Path) -> str:
    entry = {
        "type": "stdio",
        "command": str(command),
        "args": ["serve", "--root", "${workspaceFolder}"],
    }
    return json.dumps({"servers": {"toolcrib": entry}}, indent=2)


def _claude_code(command: Path, root: Path) -> str:
    return f"claude mcp add toolcrib -- {command} serve --root {root}"


def _codex(command: Path, root: Path) -> str:
    args = json.dumps(["serve", "--root", str(root)])
    return f"[mcp_servers.toolcrib]\ncommand = {json.dumps(str(command))}\nargs = {args}"


def _app_support() -> Path:
    return Path("~/Library/Application Support" if sys.platform == "darwin" else "~/.config")


CLIENTS = (
    Client(
        "Claude Desktop",
        "claude_desktop_config.json (Settings > Developer > Edit Config)",
        _servers,
        (_app_support() / "Claude").expanduser(),
    ),
    Client("Claude Code", "run this", _claude_code, Path("~/.claude.json").expanduser()),
    Client("VS Code", ".vscode/mcp.json", _vscode, (_app_support() / "Code").expanduser()),
    Client("Cursor", "~/.cursor/mcp.json", _servers, Path("~/.cursor").expanduser()),
    Client("Codex", "~/.codex/config.toml", _codex, Path("~/.codex").expanduser()),
)
"""The clients that the README names, in its order."""
