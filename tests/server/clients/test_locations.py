import subprocess
import sys
from importlib.metadata import version

import pytest

from server.clients.locations import OwnAddress, command_path, starts_toolcrib


def test_the_command_is_the_installed_one() -> None:
    assert command_path().is_absolute()
    ended = subprocess.run(
        [command_path(), "--version"], check=True, capture_output=True, text=True
    )
    assert ended.stdout == f"toolcrib {version('toolcrib')}\n"


def test_nothing_is_read_from_the_home_directory_on_import() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import server.clients.table"], check=False, env={"HOME": ""}
    )
    assert ended.returncode == 0


@pytest.mark.parametrize(
    ("value", "ours"),
    [
        ({"command": "/opt/bin/toolcrib", "args": ["serve"]}, True),
        ({"command": ["/opt/bin/toolcrib", "serve"]}, True),
        ({"cmd": "/opt/bin/toolcrib", "name": "toolcrib"}, True),
        ({"command": "uvx", "args": ["--from", "git+https://h/x", "toolcrib", "serve"]}, True),
        ({"hooks": [{"command": "/opt/bin/toolcrib hook codex stop"}]}, True),
        ({"bash": "'/opt/bin/toolcrib' hook copilot agentStop"}, True),
        ({"command": "npx", "args": ["files", "/home/me/toolcrib"]}, False),
        ({"command": "x", "name": "toolcrib", "description": "like toolcrib"}, False),
        ({"hooks": [{"command": "echo toolcrib"}]}, False),
        ([], False),
        ("toolcrib", False),
        (None, False),
    ],
)
def test_our_command_is_recognised_in_servers_and_in_hooks(value: object, ours: bool) -> None:
    assert starts_toolcrib(value, OwnAddress("127.0.0.1", 8765)) is ours
