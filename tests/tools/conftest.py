"""The whole product in memory, asked by a real client; and a manager of some functions.

Every tool is listed whole, so that the client holds each result against its schema.
"""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_process
from mcp import Client
from mcp_types import ElicitResult

from server.app import App, build
from server.settings.sources import load
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from tests.conftest import told
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.jobs import PATIENCE
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.sandbox.files.sandbox import Sandbox


@dataclass
class Crib:
    """The product and a client of it."""

    app: App
    client: Client
    root: Path

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call that succeeds."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        found: dict[str, Any] | None = result.structured_content
        assert found is not None
        return found

    async def text(self, name: str, /, **arguments: Any) -> str:
        """What the model reads of a call."""
        return told(await self.client.call_tool(name, arguments))

    async def failure(self, name: str, /, **arguments: Any) -> tuple[str, str]:
        """The error type of a call that fails, and all that the model is told."""
        result = await self.client.call_tool(name, arguments)
        assert result.is_error, result.content
        text = told(result)
        assert "Traceback" not in text
        assert "\nNext: " in text
        return text.partition(":")[0], text

    async def embed(self) -> None:
        """Waits until everything is embedded."""
        shelf = self.app.library.shelf(self.app.identity)
        with anyio.fail_after(60):
            while not shelf.index_status().complete:  # a thread tells no event
                await anyio.lowlevel.checkpoint()


Open = Callable[..., AbstractAsyncContextManager[Crib]]


@asynccontextmanager
async def asking(crib: Crib, mode: str, model: Any) -> AsyncIterator[Crib]:
    """The crib, asked by a client that offers a model."""
    async with Client(crib.app.server, mode=mode, sampling_callback=model) as client:
        before, crib.client = crib.client, client
        yield crib
        crib.client = before


async def agree(context: Any, params: Any) -> ElicitResult:
    """A person who allows whatever they are asked about."""
    return ElicitResult(action="accept", content={"answer": "once"})


@asynccontextmanager
async def _opened(
    place: Path, mode: str = "2026-07-28", patience: float = PATIENCE, **flags: Any
) -> AsyncIterator[Crib]:
    (place / "root").mkdir(exist_ok=True)
    named = {key.replace("__", "."): value for key, value in flags.items()}
    places = {"data_dir": place / "data", "root": place / "root"}
    defaults = places | {"surface": "full", "skills.discover": False}
    app = build(load(defaults | named, environ={"TOOLCRIB_CONFIG": ""}), patience=patience)
    async with app.running(), Client(app.server, mode=mode, elicitation_callback=agree) as client:
        yield Crib(app, client, place / "root")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir(exist_ok=True)
    return tmp_path / "root"


@pytest.fixture
def open_crib(tmp_path: Path) -> Open:
    """Opens the product on a root and a data directory of its own, with the given settings."""
    return partial(_opened, tmp_path)


@pytest.fixture
async def crib(open_crib: Open) -> AsyncIterator[Crib]:
    """The product with its default settings, on a root and a data directory of its own."""
    async with open_crib() as crib:
        yield crib


@pytest.fixture(scope="module")
def open_shared(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """The same, once for a module, for tests that leave nothing behind."""
    return partial(_opened, tmp_path_factory.mktemp("shared"))


class Site(ThreadingHTTPServer):
    """A site on loopback.

    Attributes:
        pages: The status, headers and body of each path.
        asked: The method, path, headers and body of every request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        self.address = f"127.0.0.1:{self.server_port}"
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    def serve(
        self,
        path: str,
        body: bytes | str,
        content_type: str = "",
        status: int = 200,
        **headers: str,
    ) -> str:
        """Puts a page at a path, and says where that is."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if content_type:
            named["Content-Type"] = content_type
        data = body.encode() if isinstance(body, str) else body
        self.pages[path] = status, named, data
        return f"http://{self.address}{path}"


class _Pages(BaseHTTPRequestHandler):
    server: Site

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        status, headers, content = self.server.pages.get(self.path, (404, {}, b"not here"))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def log_message(self, *given: Any) -> None:
        """Says nothing."""


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on loopback."""
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
async def workers() -> AsyncIterator[None]:
    """Ends the processes that read pages with the test, before its event loop does."""
    yield
    for process in to_process._process_pool_workers.get(set()).copy():
        with suppress(ProcessLookupError):
            process.kill()
        await process.aclose()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path / "data", MiniLMEmbedder())
    yield library
    library.close()


@pytest.fixture
def toolbox(tmp_path: Path, library: Library) -> Callable[..., SandboxToolManager]:
    """Makes a manager of some functions, with a real sandbox and a real library."""

    def make(
        *functions: Callable[..., Any], source: str = "function", **options: Any
    ) -> SandboxToolManager:
        registry = ToolRegistry()
        for function in functions:
            registry.add(FunctionToMCP.convert(function, source=source))
        return SandboxToolManager(
            registry, sandbox=Sandbox(tmp_path), library=library, permissions=None, **options
        )

    return make
