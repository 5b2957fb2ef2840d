from typing import Any

import pytest

from server.clients.locations import OwnAddress, is_toolcrib

OWN = OwnAddress("crib.example", 8765)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "toolcrib", "args": ["serve"]},
        {"command": "/home/you/.venv/bin/toolcrib"},
        {"command": "C:\\venv\\Scripts\\toolcrib.exe", "args": ["serve"]},
        {"command": "toolcrib serve --root ."},
        {"command": "uvx", "args": ["toolcrib", "serve"]},
        {"command": "/usr/bin/uvx", "args": ["--from", "toolcrib[keyring]==0.1", "toolcrib"]},
        {"command": "uvx", "args": ["toolcrib@latest"]},
        {"command": "uv", "args": ["run", "--directory", "/x", "toolcrib", "serve"]},
        {"command": "python3.12", "args": ["-m", "toolcrib"]},
        {"command": "python", "args": ["/home/you/.venv/bin/toolcrib", "serve"]},
        {"command": "bash", "args": ["-lc", "toolcrib serve"]},
        {"command": "sh", "args": ["-c", "exec '/opt/bin/toolcrib' serve"]},
        {"command": "caffeinate", "args": ["/opt/bin/toolcrib", "serve"]},
        {"url": "http://127.0.0.1:8765/mcp"},
        {"serverUrl": "http://localhost:8765/sse"},
        {"httpUrl": "http://crib.example:8765/mcp"},
        {"command": "npx", "args": ["mcp-remote", "http://[::1]:8765/mcp"]},
    ],
)
def test_toolcrib_is_known_however_it_is_started_or_reached(entry: dict[str, Any]) -> None:
    assert is_toolcrib(entry, OWN)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["-y", "fs", "/home/you/code/toolcrib"]},
        {"command": "mcp-server-git", "args": ["--repository", "toolcrib"]},
        {"command": "toolcrib-notes"},
        {"command": "uvx", "args": ["my-toolcrib"]},
        {"url": "http://127.0.0.1:9000/mcp"},
        {"url": "https://example.com:8765/mcp"},
        {"url": "http://localhost:port/"},
        {"url": "http://[/"},
        {"command": ""},
        {"command": 3, "args": [None, 1], "env": {"A": "toolcrib"}},
        {},
    ],
)
def test_others_are_not_taken_for_it(entry: dict[str, Any]) -> None:
    assert not is_toolcrib(entry, OWN)
