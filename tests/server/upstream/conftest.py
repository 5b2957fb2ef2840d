"""The real server with another one behind it, that runs as a process of its own."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport

from server.app import App
from server.settings.gateway import ServerSettings
from server.settings.safety import PolicySettings
from tests.server.serving import running

TOY = Path(__file__).with_name("toy_upstream.py")


class Journal:
    """What the other server told of itself."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def lines(self) -> list[str]:
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []

    async def tells(self, line: str) -> None:
        """Waits until it has told that."""
        with anyio.fail_after(20):
            while line not in self.lines:  # noqa: ASYNC110  # another process writes it
                await anyio.sleep(0.005)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def app_of(tmp_path: Path, journal: Journal) -> Callable[..., AbstractAsyncContextManager[App]]:
    """Runs the server with the toy behind it, as `toy`."""

    @asynccontextmanager
    async def make(
        era: str = "handshake", *, allow: tuple[str, ...] = ("*",), **settings: Any
    ) -> AsyncIterator[App]:
        toy = ServerSettings(
            command=sys.executable,
            args=(str(TOY), era),
            env={"TOY_JOURNAL": str(journal.path)},
            **settings,
        )
        policy = PolicySettings(allow=allow)
        async with running(tmp_path, policy=policy, servers={"toy": toy}) as app:
            yield app

    return make


@pytest.fixture
def client_of() -> Callable[..., Client]:
    """Makes a client of a running server, which speaks to it in messages."""

    def make(app: App, era: str = "legacy", **can: Any) -> Client:
        mode = "legacy" if era == "legacy" else "2026-07-28"
        return Client(InMemoryTransport(app.server), mode=mode, **can)

    return make


@pytest.fixture
def toy(
    app_of: Callable[..., AbstractAsyncContextManager[App]], client_of: Callable[..., Client]
) -> Callable[..., AbstractAsyncContextManager[Client]]:
    """A client of the server with the toy behind it, each of some era."""

    @asynccontextmanager
    async def make(
        upstream: str = "handshake", era: str = "legacy", **can: Any
    ) -> AsyncIterator[Client]:
        async with app_of(upstream) as app, client_of(app, era, **can) as client:
            yield client

    return make
