"""Toolcrib behind Toolcrib, with the same settings."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from server.clients.locations import command_path
from server.settings.gateway import ServerSettings
from server.upstream.connections.environment import VARIABLE, allowed_servers, depth_of

pytestmark = pytest.mark.slow


async def test_toolcrib_does_not_start_itself_for_ever(raw_server: Any, tmp_path: Path) -> None:
    starts, config = tmp_path / "starts", tmp_path / "config.toml"
    line = f"echo >> {starts}; exec {command_path()} serve --config {config}"
    config.write_text(
        f"data_dir = '{tmp_path / 'data'}'\n"
        f"root = '{tmp_path}'\n"
        f"servers.itself = {{command = 'sh', args = ['-c', {json.dumps(line)}]}}\n"
    )
    session = raw_server(tmp_path, TOOLCRIB_CONFIG=str(config))
    log = tmp_path / "data" / "logs" / "toolcrib.log"
    with anyio.fail_after(60):
        while "No other server is started" not in (log.read_text() if log.exists() else ""):  # noqa: ASYNC110  # another process writes it
            await anyio.sleep(0.01)
    session.close()
    assert len(starts.read_text()) == 3


@pytest.mark.parametrize(
    ("said", "depth"), [("", 0), ("0", 0), ("2", 2), ("3", 3), ("4", 3), ("-1", 3), ("²", 3)]
)
def test_a_depth_that_is_unclear_is_the_deepest(said: str, depth: int) -> None:
    assert depth_of({VARIABLE: said}) == depth


def test_servers_are_started_from_above_only() -> None:
    servers = {"toy": ServerSettings(command="toy")}
    assert allowed_servers(servers, {VARIABLE: "2"}) == servers
    assert allowed_servers(servers, {VARIABLE: "3"}) == {}
