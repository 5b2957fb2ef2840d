"""Toolcrib, whole and in this process, before servers to browse that are programs of their own."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from server.app import App, build
from server.settings import Settings
from server.settings.gateway import ServerSettings
from server.settings.safety import PolicySettings

BROWSED = Path(__file__).with_name("browsed_server.py")


@pytest.fixture
def app_before(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[App]]:
    """Runs Toolcrib before servers, each a name and what it knows: legacy or both."""

    @asynccontextmanager
    async def make(
        *servers: tuple[str, str],
        more: dict[str, ServerSettings] | None = None,
        lazy: bool = False,
        **others: Any,
    ) -> AsyncIterator[App]:
        root = tmp_path / "root"
        root.mkdir(exist_ok=True)
        named = {
            name: ServerSettings(
                command=sys.executable, args=(str(BROWSED), name, era), cwd=root, lazy=lazy
            )
            for name, era in servers
        }
        app = build(
            Settings(
                data_dir=tmp_path / "data",
                root=root,
                servers={**(more or {}), **named},
                policy=PolicySettings(allow=("*",)),
                **others,
            ),
            command="/opt/toolcrib",
        )
        async with app.running():
            yield app

    return make


@pytest.fixture
def client_before(
    app_before: Callable[..., AbstractAsyncContextManager[App]],
) -> Callable[..., AbstractAsyncContextManager[Client]]:
    """A client of Toolcrib before one server `ann`, both of some era."""

    @asynccontextmanager
    async def make(mode: str, era: str, **can: Any) -> AsyncIterator[Client]:
        async with (
            app_before(("ann", era)) as app,
            Client(app.server, mode=mode, cache=None, **can) as client,
        ):
            yield client

    return make


@pytest.fixture
def browsed(
    app_before: Callable[..., AbstractAsyncContextManager[App]],
) -> Callable[..., AbstractAsyncContextManager[Client]]:
    """A client of Toolcrib before some servers."""

    @asynccontextmanager
    async def make(
        *servers: tuple[str, str], mode: str = "auto", **others: Any
    ) -> AsyncIterator[Client]:
        async with app_before(*servers, **others) as app, Client(app.server, mode=mode) as client:
            yield client

    return make
