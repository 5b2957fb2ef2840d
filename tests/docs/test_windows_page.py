"""The page for Windows: it has a configuration for each client, which starts the server in WSL."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.clients.table import CLIENTS

PAGE = (Path(__file__).parents[2] / "docs" / "windows.md").read_text(encoding="utf-8")
COMMAND = "/home/you/toolcrib/.venv/bin/toolcrib"
PLACES = {"json": ("mcpServers", "servers"), "toml": ("mcp_servers",)}


def entries() -> Iterator[dict[str, Any]]:
    for kind, text in re.findall(r"```(json|toml)\n(.*?)```", PAGE, re.DOTALL):
        values = json.loads(text) if kind == "json" else tomllib.loads(text)
        (key,) = values
        assert key in PLACES[kind]
        yield values[key]["toolcrib"]


@pytest.mark.parametrize("entry", list(entries()))
def test_a_configuration_starts_the_server_in_wsl(entry: dict[str, Any]) -> None:
    assert entry["command"] == "wsl.exe"
    assert entry["args"] == ["-d", "Ubuntu", "--", COMMAND, "serve", "--root", "/home/you/notes"]


def test_each_client_is_named() -> None:
    names = ("claude-desktop", "claude-code", "vscode", "cursor", "codex")
    assert [CLIENTS[each].title for each in names if CLIENTS[each].title not in PAGE] == []
    assert len(list(entries())) == 4  # Claude Code takes that of Claude Desktop


def test_it_says_that_nobody_has_tried_it() -> None:
    assert "We have not tried this page on Windows" in PAGE
