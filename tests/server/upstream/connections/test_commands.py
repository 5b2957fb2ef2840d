"""The commands that look at tools, with other servers in the settings."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.clients.locations import command_path

pytestmark = pytest.mark.slow


@pytest.fixture
def toolcrib(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command with some servers in its settings."""

    def run(servers: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
        told = {
            name: each.settings().model_dump(mode="json", include={"command", "args"})
            for name, each in servers.items()
        }
        variables = {
            "TOOLCRIB_DATA_DIR": str(tmp_path / "data"),
            "TOOLCRIB_ROOT": str(tmp_path),
            "TOOLCRIB_POLICY__ALLOW": "toy__*",
            "TOOLCRIB_SERVERS": json.dumps(told),
        }
        return subprocess.run(
            [command_path(), *words],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    return run


def test_a_call_starts_no_server_but_its_own(frail: Any, toolcrib: Any) -> None:
    toy, other = frail("toy"), frail("other")
    done = toolcrib({"toy": toy, "other": other}, "call", "toy__echo", "text=hello")
    assert done.stdout.strip() == "hello", done.stderr
    assert (len(toy.pids), len(other.pids)) == (1, 0)


def test_what_a_server_says_beside_its_answer_is_not_shown(frail: Any, toolcrib: Any) -> None:
    done = toolcrib({"toy": frail("toy", tools=["say"])}, "call", "toy__say", "text=noise")
    assert done.stdout.strip() == "noise"
    assert "noise" not in done.stderr


@pytest.mark.parametrize("end", ["close", "kill"])
async def test_nothing_is_left_of_the_servers_of_a_session(
    end: str, frail: Any, raw_server: Any, until: Any, tmp_path: Path
) -> None:
    servers = {"stubborn": frail("stubborn", stubborn=True), "silent": frail("silent", silent=True)}
    told = {name: each.settings().model_dump(mode="json") for name, each in servers.items()}
    session = raw_server(tmp_path, TOOLCRIB_SERVERS=json.dumps(told))
    await until(lambda: all(each.pids for each in servers.values()))
    getattr(session, end)()
    pids = [pid for each in servers.values() for pid in each.pids]
    await until(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in pids))


def test_tools_of_servers_are_listed_once_they_are_known(frail: Any, toolcrib: Any) -> None:
    toy = frail("toy", tools=["say"])
    assert "toy__echo" not in toolcrib({"toy": toy}, "tools").stdout
    assert json.loads(toolcrib({"toy": toy}, "tools", "toy__say").stdout)["scope"] == "mcp"
    assert "toy__echo" in toolcrib({"toy": toy}, "tools").stdout
    assert len(toy.pids) == 1
