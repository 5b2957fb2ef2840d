"""The gateway with frail servers behind it, which run as processes of their own."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest

from server.settings.gateway import ServerSettings
from server.upstream.connections.connect import Transports
from server.upstream.connections.connection import Callbacks, Connection, MakeCallbacks
from server.upstream.connections.listing import Cached
from server.upstream.connections.server_log import log_path
from server.upstream.gateway import Gateway
from server.upstream.safety.admission import Admission
from server.upstream.upstream import Upstream
from storage.catalog.catalog import Catalog
from storage.database import Database
from tools.core.audit.trail import AuditTrail
from tools.core.registry import ToolRegistry

FRAIL = Path(__file__).with_name("frail_upstream.py")
HOME = "home"


class Frail:
    """Another server, with what it is told and what it tells.

    Args:
        place: Its directory.
        switches: Its faults.
    """

    def __init__(self, place: Path, **switches: Any) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place = place
        self.switch(**switches)

    def switch(self, **switches: Any) -> None:
        """Gives it other faults from its next start on."""
        (self.place / "switches.json").write_text(json.dumps(switches))

    def settings(self, **more: Any) -> ServerSettings:
        args = (str(FRAIL), str(self.place))
        return ServerSettings(**{"command": sys.executable, "args": args, **more})

    @property
    def pids(self) -> list[int]:
        """The processes that it was, the last one last."""
        path = self.place / "journal"
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.removeprefix("started ")) for line in lines]


class Running:
    """A gateway that runs.

    Args:
        gateway: The gateway.
        registry: Where it puts the tools.
    """

    def __init__(self, gateway: Gateway, registry: ToolRegistry) -> None:
        self.gateway = gateway
        self.registry = registry

    def __getitem__(self, server: str) -> Upstream:
        return self.gateway.upstreams[server]

    @property
    def names(self) -> list[str]:
        return [spec.name for spec in self.registry.specs()]

    async def call(self, server: str, tool: str, text: str = "", *, session_id: str = HOME) -> str:
        """What a tool answers, without all that is around a call."""
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=tool, arguments={"text": text})
        )

        async def question(connection: Connection) -> types.CallToolResult:
            return await connection.session.send_request(request, types.CallToolResult)

        result = await self[server].ask(session_id, question)
        assert isinstance(result.content[0], types.TextContent)
        return result.content[0].text


async def _until(holds: Callable[[], object]) -> None:
    with anyio.fail_after(20):
        while not holds():  # noqa: ASYNC110  # other processes bring it about
            await anyio.sleep(0.005)


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Any]:
    """Waits until something holds that other processes bring about."""
    return _until


@pytest.fixture
def frail(tmp_path: Path) -> Callable[..., Frail]:
    """Makes a server."""

    def make(name: str = "frail", **switches: Any) -> Frail:
        return Frail(tmp_path / name, **switches)

    return make


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with closing(Database(tmp_path / "catalog.db")) as database:
        yield Catalog(database)


@pytest.fixture
def printed(tmp_path: Path) -> Callable[[str], str]:
    """What the log of a server has."""

    def read(server: str) -> str:
        trail = AuditTrail(log_path(tmp_path, server))
        return "\n".join(entry["text"] for entry in trail.last(10_000, lambda _: True))

    return read


@pytest.fixture
def gateway_of(
    catalog: Catalog, tmp_path: Path
) -> Callable[..., AbstractAsyncContextManager[Running]]:
    """Runs a gateway in front of some servers."""

    @asynccontextmanager
    async def make(
        *,
        eager: bool = True,
        environ: dict[str, str] | None = None,
        make_callbacks: MakeCallbacks = lambda *_: Callbacks(),
        **servers: ServerSettings,
    ) -> AsyncIterator[Running]:
        registry = ToolRegistry()
        gateway = Gateway(
            servers,
            registry,
            HOME,
            admission=Admission(registry, catalog.pins, servers),
            transports=Transports(
                dict(os.environ) if environ is None else environ, data_dir=tmp_path
            ),
            cached=Cached(catalog.listings),
            make_callbacks=make_callbacks,
        )
        with anyio.fail_after(60):
            async with gateway.running(eager=eager):
                if eager:
                    await gateway.ready()
                yield Running(gateway, registry)

    return make
