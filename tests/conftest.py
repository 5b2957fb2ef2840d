"""Fixtures that every test may use."""

import json
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from hypothesis import settings

from server.clients.locations import command_path
from storage.index import maintenance, vector_sync
from storage.outbound import opt_out
from tools.data.running.environment import DataEnvironment, Extent

# Each inherits what is set already: that of CI, where there is one. No test goes by the clock.
settings.register_profile("brief", settings(max_examples=50, deadline=None))
settings.register_profile("long", settings(max_examples=1000, deadline=None))
settings.load_profile("brief")

opt_out()  # tests import libraries themselves
# What uv has fetched is shared between test runs; a server of its own keeps it with its data.
os.environ.setdefault("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Runs named files and tests in this process, and whole runs on every core."""
    is_named = all(".py" in each for each in config.args)
    return 0 if is_named else None


def told(result: object) -> str:
    """What the model reads of a result that is text alone."""
    assert isinstance(result, types.CallToolResult)
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@pytest.fixture
def everyone_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives every user a collection of the vector index, however few vectors they have."""
    monkeypatch.setattr(vector_sync, "EXACT_LIMIT", 0)
    monkeypatch.setattr(maintenance, "FOLD_CHUNKS", 1)


class RawServer:
    """A real server over stdio, asked line by line.

    Args:
        place: Where its root and its data are.
        variables: What else is in its environment.
    """

    def __init__(self, place: Path, **variables: str) -> None:
        (place / "root").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [command_path(), "serve", "--root", place / "root", "--data-dir", place / "data"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TOOLCRIB_RESULTS": "both", **variables},
            text=True,
        )
        self._tell("initialize", HELLO, 0)
        self._tell("notifications/initialized", {})
        self._answer()

    def begin(self, name: str, **arguments: Any) -> None:
        """Sends a call, and waits for nothing."""
        self._tell("tools/call", {"name": name, "arguments": arguments}, 1)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        self.begin(name, **arguments)
        result: dict[str, Any] = self._answer()["result"]
        return result

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Closes its input, which ends it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

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


@pytest.fixture
def raw_server() -> type[RawServer]:
    return RawServer


@pytest.fixture(params=["legacy", "2026-07-28"])
def mode(request: pytest.FixtureRequest) -> str:
    """The era of the protocol that a client speaks: each in turn."""
    mode: str = request.param
    return mode


@pytest.fixture(scope="session")  # what a module shares may run in an event loop, too
def anyio_backend() -> str:
    return "asyncio"


async def _say_nothing(_line: str) -> None:
    await anyio.lowlevel.checkpoint()


@pytest.fixture(scope="session")
def data_juicer(tmp_path_factory: pytest.TempPathFactory) -> DataEnvironment:
    """Data-Juicer as it is really set up, once for all processes of a test run."""
    shared = tmp_path_factory.getbasetemp().parent / "shared"
    environment = DataEnvironment(shared, environ=os.environ)
    anyio.run(environment.set_up, Extent.MINIMAL, _say_nothing)
    return environment


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[None]]:
    """A disk on which no file of this process grows beyond some bytes."""
    return _full_disk


@contextmanager
def _full_disk(file_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
