"""Clients over stdio that share one Toolcrib: each has its own conversation, and its own end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from server.clients.locations import command_path
from tests.server.serving import environ, keep, until

pytestmark = pytest.mark.slow

FRAIL = Path(__file__).parents[1] / "upstream/connections/frail_upstream.py"
HELLO = (
    b'{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": '
    b'"2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}\n'
)


@dataclass
class Place:
    """Where Toolcribs with the same settings meet."""

    directory: Path
    runtime: Path
    sessions: str = "per_conversation"
    more: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        (self.directory / "switches.json").write_text(json.dumps({"tools": ["keep", "hang"]}))
        frail = {
            "command": sys.executable,
            "args": [str(FRAIL), str(self.directory)],
            "sessions": self.sessions,
        }
        settings = {
            "ATTACH": "true",
            "SERVERS": json.dumps({"frail": frail}),
            "POLICY__ALLOW": "*",
            "RESULTS": "both",
        }
        return environ(self.directory, **settings | self.more) | {
            "XDG_RUNTIME_DIR": str(self.runtime)
        }

    @asynccontextmanager
    async def client(self, env: dict[str, str] | None = None, **more: Any) -> AsyncIterator[Client]:
        started = StdioServerParameters(
            command=str(command_path()), args=["serve"], env=env or self.env
        )
        with anyio.fail_after(60), (self.directory / "stderr").open("a") as errors:
            async with Client(stdio_client(started, errors), **more) as client:
                yield client

    @property
    def stderr(self) -> str:
        return (self.directory / "stderr").read_text()

    @property
    def toolcribs(self) -> set[int]:
        """The processes of the command, those that serve and the relays."""
        every = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
        return {pid for pid in every if self._is(pid)}

    @property
    def hosts(self) -> set[int]:
        """Those that serve, which are in no client's process group."""
        return {pid for pid in self.toolcribs if _session_of(pid) not in {pid, None}}

    @property
    def relays(self) -> set[int]:
        return self.toolcribs - self.hosts

    @property
    def programs(self) -> set[int]:
        """The processes of the other server that still run."""
        journal = self.directory / "journal"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return {pid for pid in (int(each.split()[1]) for each in lines) if _runs(pid)}

    def _is(self, pid: int) -> bool:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            said = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return words[2:3] == [b"serve"] and f"XDG_RUNTIME_DIR={self.runtime}".encode() in said


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    runtime = Path(tempfile.mkdtemp())  # a socket's path may have 107 bytes
    found = Place(tmp_path, runtime)
    yield found
    for pid in found.toolcribs:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(runtime)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("sessions", ["per_conversation", "shared"])
async def test_each_client_has_its_own_conversation_until_its_end(
    place: Place, era: str, sessions: str
) -> None:
    place.sessions = sessions
    is_shared = sessions == "shared"
    async with place.client(mode=era) as second:
        async with place.client(mode=era) as first:
            assert await keep(first, "mine") == "mine"
            assert await keep(second, "yours") == ("mine yours" if is_shared else "yours")
            assert len(place.hosts) == 1
            assert len(place.relays) == 2
            before = place.programs
            assert len(before) == (1 if is_shared else 2)
        await until(lambda: len(place.relays) == 1)
        expected = "mine yours more" if is_shared else "yours more"
        assert await keep(second, "more") == expected
        await until(lambda: is_shared or place.programs < before)
    await until(lambda: not place.toolcribs | place.programs)
    assert not list(place.runtime.rglob("*.sock"))


async def test_the_client_that_came_first_may_leave_first(place: Place) -> None:
    async with place.client() as first:
        assert await keep(first, "mine") == "mine"
        leaves = anyio.Event()
        async with anyio.create_task_group() as group:
            second = await group.start(_stay, place, leaves)
            assert await keep(second, "yours") == "yours"
            relay = min(place.relays)
            programs = place.programs
            os.kill(relay, signal.SIGKILL)  # while nothing of the second client's is its child
            await until(lambda: len(place.programs & programs) == 1)
            assert await keep(second, "more") == "yours more"
            leaves.set()
    await until(lambda: not place.toolcribs | place.programs)


async def _stay(place: Place, leaves: anyio.Event, *, task_status: Any) -> None:
    async with place.client() as client:
        task_status.started(client)
        await leaves.wait()


async def test_a_killed_relay_ends_what_its_client_waits_for(place: Place) -> None:
    async with place.client() as other:
        assert await keep(other, "mine") == "mine"
        programs, relays = place.programs, place.relays
        started = subprocess.Popen(  # noqa: ASYNC220  # in a test
            [command_path(), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=place.env,
            start_new_session=True,
        )
        assert started.stdin is not None
        call = {"name": "frail__hang", "arguments": {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        started.stdin.write(HELLO + b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        started.stdin.write(json.dumps(message).encode() + b"\n")
        started.stdin.flush()
        await until(lambda: place.programs - programs)
        assert place.relays == relays | {started.pid}
        started.kill()
        started.communicate()
        await until(lambda: place.programs == programs)
        assert await keep(other, "more") == "mine more"


async def test_a_client_whose_toolcrib_was_killed_is_told_and_the_next_start_serves(
    place: Place,
) -> None:
    async with place.client() as client:
        assert await keep(client, "mine") == "mine"
        (host,) = place.hosts
        os.kill(host, signal.SIGKILL)
        with pytest.raises(MCPError):
            await keep(client, "more")
    assert "The Toolcrib that served this client has ended. Restart this server." in place.stderr
    assert list(place.runtime.rglob("*.sock"))
    async with place.client() as client:
        assert await keep(client, "yours") == "yours"
        assert place.hosts
        assert host not in place.hosts


async def test_starts_at_once_share_one_process_and_large_messages_pass(place: Place) -> None:
    large = "x" * 3_000_000

    async def start() -> None:
        async with place.client() as client:
            assert await keep(client, large)
            ready.append(client)
            await until(lambda: len(ready) == 4)
            assert len(place.hosts) == 1

    ready: list[Client] = []
    place.more = {"LIMITS__RESULT_TOKENS": "0"}
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(start)


@pytest.mark.parametrize("sessions", ["per_conversation", "shared"])
async def test_a_question_goes_to_the_client_that_made_the_call(
    place: Place, sessions: str
) -> None:
    asked: list[str] = []

    def person(name: str) -> Any:
        async def answer(_context: Any, _params: Any) -> types.ElicitResult:
            await anyio.lowlevel.checkpoint()
            asked.append(name)
            return types.ElicitResult(action="accept", content={"answer": "once"})

        return answer

    place.sessions, place.more = sessions, {"POLICY__ALLOW": ""}
    async with (
        place.client(mode="legacy", elicitation_callback=person("first")) as first,
        place.client(mode="legacy", elicitation_callback=person("second")) as second,
    ):
        await keep(second, "x")
        assert asked == ["second"]
        await keep(first, "x")
        assert asked == ["second", "first"]


@pytest.mark.parametrize(
    "other",
    [
        {"TOOLCRIB_RESULTS": "text"},  # other settings
        {"PATH": os.environ["PATH"] + os.pathsep + "/nowhere"},  # other servers, perhaps
        {"_TOOLCRIB_DEPTH": "1"},  # started by a Toolcrib
    ],
)
async def test_a_client_that_would_be_served_differently_does_not_attach(
    place: Place, other: dict[str, str]
) -> None:
    async with place.client() as one, place.client(place.env | other) as two:
        await keep(one, "mine")
        await keep(two, "yours")
        assert len(place.hosts) == (1 if "_TOOLCRIB_DEPTH" in other else 2)
        assert len(place.relays) == 2


async def test_without_a_private_directory_each_client_is_served_alone(place: Place) -> None:
    directory = place.runtime / f"toolcrib-{os.geteuid()}"
    directory.mkdir()
    directory.chmod(0o755)
    async with place.client() as client:
        assert await keep(client, "mine") == "mine"
        assert not place.hosts
    assert "is not a directory that only its owner can enter" in place.stderr


def test_a_start_that_fails_says_why(place: Place) -> None:
    done = subprocess.run(
        [command_path(), "serve"],
        input=HELLO,
        capture_output=True,
        env=place.env | {"TOOLCRIB_RESULTS": "nothing_like_it"},
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.count(b"nothing_like_it") == 1
    assert not list(place.runtime.rglob("*.sock"))
