"""A real server that is killed, or that cannot write: what it answered is recorded, or answered."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from server.clients import command_path

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Server:
    """A real server over stdio, asked line by line."""

    def __init__(self, place: Path) -> None:
        (place / "root").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [command_path(), "serve", "--root", place / "root", "--data-dir", place / "data"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._tell("initialize", HELLO, 0)
        self._tell("notifications/initialized", {})
        self._answer()

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        self._tell("tools/call", {"name": name, "arguments": arguments}, 1)
        result: dict[str, Any] = self._answer()["result"]
        return result

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def _tell(self, method: str, params: dict[str, Any], number: int | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.mark.slow
def test_what_was_answered_before_a_kill_is_recorded(tmp_path: Path) -> None:
    for life in range(3):
        server = Server(tmp_path)
        for number in range(5):
            server.call("list_directory", path=f"life{life}-{number}")
        server.kill()
    server = Server(tmp_path)
    found = server.call("query_events", filter_by="action", value="list_directory")
    server.kill()
    targets = [each["target"] for each in found["structuredContent"]["events"]]
    assert targets == [f"life{life}-{number}" for life in (2, 1, 0) for number in (4, 3, 2, 1, 0)]
    assert len({each["session"] for each in found["structuredContent"]["events"]}) == 3


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
def test_a_disk_that_takes_nothing_any_more_changes_no_answer(tmp_path: Path) -> None:
    server = Server(tmp_path)
    before = server.call("list_directory", path=".")
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    for _ in range(3):
        after = server.call("list_directory", path=".")
        assert after["structuredContent"] == before["structuredContent"]
    assert server.call("add_knowledge", content="tea")["structuredContent"]["error_type"] == (
        "unavailable"
    )
    resource.prlimit(
        server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    server.call("list_directory", path="root")
    found = server.call("query_events", outcome="failed")
    server.kill()
    assert [each["target"] for each in found["structuredContent"]["events"]] == ["root"]
