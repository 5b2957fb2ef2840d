"""What real servers leave in the directory for temporary files when they are killed: nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from server.clients import command_path

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    for name in ("root", "temporary"):
        (tmp_path / name).mkdir()
    return tmp_path / "temporary"


@contextmanager
def serving(temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """A server that has run a program to its end and another one that goes on."""
    variables = {
        "TMPDIR": str(temporary),
        "TOOLCRIB_ROOT": str(temporary.parent / "root"),
        "TOOLCRIB_DATA_DIR": str(temporary.parent / "data"),
        "TOOLCRIB_POLICY__ALLOW": "bash",
    }
    with subprocess.Popen(
        [command_path(), "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **variables},
        text=True,
    ) as server:
        ask(server, "initialize", HELLO)
        for more in ({}, {"run_in_background": True}):
            command = "echo x > $TMPDIR/file; sleep 1000" if more else "true"
            call = {"name": "bash", "arguments": {"command": command, **more}}
            assert "error_type" not in ask(server, "tools/call", call)
        yield server


def ask(server: subprocess.Popen[str], method: str, params: dict[str, Any]) -> str:
    """What it answers."""
    assert server.stdin is not None
    assert server.stdout is not None
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    return next(line for line in server.stdout if '"id":1' in line.replace(" ", ""))


def with_descendants(pid: int) -> list[int]:
    found = [pid]
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listed.read_text().split():
            found += with_descendants(int(child))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["the server", "all at once"])
def test_what_a_killed_server_left_is_gone_when_the_next_has_run_a_program(
    temporary: Path, killed: str
) -> None:
    for _ in range(2):
        with serving(temporary) as server:
            pids = with_descendants(server.pid) if killed == "all at once" else [server.pid]
            for number in (signal.SIGSTOP, signal.SIGKILL):  # as a service manager does it
                for pid in pids:
                    os.kill(pid, number)
    assert list(temporary.iterdir())
    with serving(temporary):
        pass  # it ends as its input does
    deadline = time.monotonic() + 20
    while list(temporary.iterdir()):  # of the killed ones, the programs end by and by
        assert time.monotonic() < deadline, list(temporary.iterdir())
