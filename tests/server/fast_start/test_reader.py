"""The opening of the real command: what a client hears and does while the server loads."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.clients.locations import command_path

pytestmark = pytest.mark.slow

CLIENT = {"name": "test", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
LOADED = b"unreachable.json"


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


INITIALIZE = line(id=0, method="initialize", params=HELLO)
INITIALIZED = line(method="notifications/initialized")
LEGACY = [INITIALIZE, INITIALIZED, line(id=1, method="tools/list"), line(id=2, method="ping")]
MODERN = [
    line(id=0, method="server/discover", params={"_meta": ENVELOPE}),
    line(id=1, method="tools/list", params={"_meta": ENVELOPE}),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("TOOLCRIB_")}
    root = tmp_path / "root"
    root.mkdir()
    command = [str(command_path()), "serve", "--root", str(root)]
    with subprocess.Popen(
        [*command, "--data-dir", str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
    ) as process:
        yield process
        process.kill()


def ids(said: bytes) -> list[int]:
    return [json.loads(each)["id"] for each in said.splitlines()]


@pytest.mark.parametrize("conversation", [LEGACY, MODERN], ids=["legacy", "modern"])
@pytest.mark.parametrize("before", [b"", b"\n"], ids=["early", "by the server"])
def test_all_that_is_said_at_once_is_answered_once_and_in_turn(
    server: subprocess.Popen[bytes], conversation: list[bytes], before: bytes
) -> None:
    said, errors = server.communicate(before + b"".join(conversation), timeout=60)
    assert ids(said) == list(range(len(ids(said)))) == sorted(map(int, ids(said)))
    assert len(ids(said)) == len([each for each in conversation if b'"id"' in each])
    assert json.loads(said.splitlines()[1])["result"]["tools"]
    assert (server.returncode, errors) == (0, b"")


def test_the_first_reply_does_not_wait_for_the_end_of_the_first_words(
    server: subprocess.Popen[bytes],
) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(INITIALIZE[:20])
    server.stdin.flush()
    server.stdin.write(INITIALIZE[20:] + INITIALIZED[:20])
    server.stdin.flush()
    assert ids(server.stdout.readline()) == [0]
    said, errors = server.communicate(INITIALIZED[20:] + line(id=1, method="ping"), timeout=60)
    assert (ids(said), server.returncode, errors) == ([1], 0, b"")


def opened(server: subprocess.Popen[bytes]) -> None:
    """The server has said its first word, and loads what it needs for the next."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(INITIALIZE)
    server.stdin.flush()
    assert ids(server.stdout.readline()) == [0]


def test_a_client_that_leaves_at_once_ends_the_server(server: subprocess.Popen[bytes]) -> None:
    opened(server)
    assert server.communicate(timeout=60) == (b"", b"")
    assert server.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_that_still_loads(
    server: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    opened(server)
    server.send_signal(number)
    said, errors = server.communicate(timeout=60)
    assert said == b""
    assert b"Traceback" not in errors
    assert server.returncode in {0, 130, -number}
