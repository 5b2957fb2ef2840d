from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.clients.locations import CLIENTS, command_path

SNIPPETS = {client.name: client.snippet for client in CLIENTS}
PATHS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def test_the_command_is_the_installed_one() -> None:
    assert command_path().is_absolute()
    ended = subprocess.run(
        [command_path(), "--version"], check=True, capture_output=True, text=True
    )
    assert ended.stdout == f"toolcrib {version('toolcrib')}\n"


@given(PATHS, PATHS)
def test_every_snippet_gives_the_client_the_command_and_the_root_unchanged(
    command: str, root: str
) -> None:
    path, arguments = Path(f"/{command}"), ["serve", "--root", str(Path(f"/{root}"))]
    made = {name: snippet(path, Path(f"/{root}")) for name, snippet in SNIPPETS.items()}
    desktop = json.loads(made["Claude Desktop"])["mcpServers"]["toolcrib"]
    assert desktop == {"command": str(path), "args": arguments}
    cursor = json.loads(made["Cursor"])["mcpServers"]["toolcrib"]
    assert cursor == {"type": "stdio", "command": str(path), "args": arguments}
    codex = tomllib.loads(made["Codex"])["mcp_servers"]["toolcrib"]
    assert codex == {"command": str(path), "args": arguments}
    vscode = json.loads(made["VS Code"])["servers"]["toolcrib"]
    assert vscode["command"] == str(path)
    assert vscode["args"] == ["serve", "--root", "${workspaceFolder}"]
    words = shlex.split(made["Claude Code"])
    assert words[words.index("--") + 1 :] == [str(path), *arguments]


def test_a_client_is_found_by_what_it_leaves_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [client.name for client in CLIENTS if client.is_found] == []
    (tmp_path / ".codex").mkdir()
    assert [client.name for client in CLIENTS if client.is_found] == ["Codex"]


def test_nothing_is_read_from_the_home_directory_on_import() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import server.clients.locations"], check=False, env={"HOME": ""}
    )
    assert ended.returncode == 0
