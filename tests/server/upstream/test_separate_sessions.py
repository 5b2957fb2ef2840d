"""Conversations over HTTP with a server behind it: who shares its state, and what they leave."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.server.serving import connected, environ, keep, serving, until

pytestmark = pytest.mark.slow

FRAIL = Path(__file__).parent / "connections/frail_upstream.py"
ROOT = Path(__file__).parents[3]
MODERN = "2026-07-28"
SESSIONS = 34  # of each of six kinds
CLIENTS = """
import sys
import anyio
from tests.server.serving import connected
url, transport, era, count = sys.argv[1:]
async def one(ready, leave):
    async with connected(url, transport, era) as client:
        result = await client.call_tool("frail__keep", {"text": "x"})
        assert not result.is_error, result
        ready.append(1)
        if len(ready) == int(count):
            print("ready", flush=True)
            await anyio.to_thread.run_sync(sys.stdin.read)
            leave.set()
        await leave.wait()
async def main():
    leave = anyio.Event()
    ready = []
    async with anyio.create_task_group() as group:
        for _ in range(int(count)):
            group.start_soon(one, ready, leave)
anyio.run(main)
"""


def settings(place: Path, **switches: Any) -> dict[str, str]:
    (place / "switches.json").write_text(json.dumps({"tools": ["keep"], **switches}))
    frail = {"command": sys.executable, "args": [str(FRAIL), str(place)]}
    return environ(place, SERVERS=json.dumps({"frail": frail}), POLICY__ALLOW="*", RESULTS="both")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with serving("http", settings(tmp_path)) as address:
        yield address


def running(place: Path) -> set[int]:
    """The processes of the server behind it that are still there."""
    path = place / "journal"
    lines = path.read_text().splitlines() if path.exists() else []
    return {pid for pid in (int(each.split()[1]) for each in lines) if _runs(pid)}


def _runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def test_clients_that_nothing_tells_apart_share_no_server(url: str) -> None:
    async with connected(url, "http", MODERN) as one, connected(url, "http", MODERN) as two:
        assert await keep(one, "mine") == "mine"
        assert await keep(two, "yours") == "yours"


async def test_a_header_names_a_conversation(url: str) -> None:
    windows = ({"Toolcrib-Conversation": "one"}, {"Toolcrib-Conversation": "two"})
    for said in ("first", "first second"):
        for window in windows:
            async with connected(url, "http", MODERN, window) as client:
                assert await keep(client, said.split()[-1]) == said


async def test_a_list_never_waits_for_a_server_that_hangs(tmp_path: Path) -> None:
    with serving("http", settings(tmp_path, silent=True)) as address:
        with anyio.fail_after(8):
            async with connected(address, "http", MODERN) as client:
                assert (await client.list_tools()).tools


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(
    ("transport", "era"), [("http", "legacy"), ("http", MODERN), ("sse", "legacy")]
)
async def test_sessions_leave_no_process_however_they_end(
    tmp_path: Path, transport: str, era: str, *, is_killed: bool
) -> None:
    with serving(transport, settings(tmp_path)) as address:
        command = [sys.executable, "-c", CLIENTS, address, transport, era, str(SESSIONS)]
        with subprocess.Popen(  # noqa: ASYNC220  # in a test
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as clients:
            assert clients.stdout is not None
            assert clients.stdin is not None
            assert await anyio.to_thread.run_sync(clients.stdout.readline) == "ready\n"
            if era == "legacy":
                assert len(running(tmp_path)) == SESSIONS + 1
            if is_killed:
                clients.kill()
            else:
                clients.stdin.close()
            await until(lambda: len(running(tmp_path)) == 1, seconds=60)
            assert await anyio.to_thread.run_sync(clients.wait) == (-9 if is_killed else 0)
