"""Real servers for tests: in this process, and in processes of their own over HTTP."""

import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from server.app import App, build
from server.clients.locations import command_path
from server.settings import Settings
from tools.core.jobs import PATIENCE


@asynccontextmanager
async def running(
    place: Path, *, patience: float = PATIENCE, **settings: Any
) -> AsyncIterator[App]:
    """The product with these settings, on a root and a data directory in a place."""
    (place / "root").mkdir(exist_ok=True)
    places = {"data_dir": place / "data", "root": place / "root"}
    app = build(Settings(**places | settings), patience=patience)
    async with app.running():
        yield app


def environ(place: Path, **settings: str) -> dict[str, str]:
    """The environment of a server on a root and a data directory in a place, on a free port."""
    (place / "root").mkdir(exist_ok=True)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TOOLCRIB_")}
    places = {"DATA_DIR": str(place / "data"), "ROOT": str(place / "root"), "HTTP__PORT": "0"}
    return inherited | {f"TOOLCRIB_{name}": value for name, value in (places | settings).items()}


@contextmanager
def serving(
    transport: str, env: Mapping[str, str] | None, command: Sequence[str] = ()
) -> Iterator[str]:
    """A server in a process of its own, ready; gives its address."""
    command = command or [str(command_path()), "serve", "--transport", transport]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        try:
            assert process.stderr is not None
            yield next(filter(None, (re.search(r"http://\S+", line) for line in process.stderr)))[0]
        finally:
            process.terminate()


@asynccontextmanager
async def connected(
    url: str, transport: str, mode: str, headers: dict[str, str] | None = None, **more: Any
) -> AsyncIterator[Client]:
    """A client of a server over HTTP."""
    with anyio.fail_after(30):
        if transport == "sse":
            async with Client(sse_client(url, headers=headers), mode=mode, **more) as client:
                yield client
            return
        async with httpx2.AsyncClient(headers=headers) as web:
            streams = streamable_http_client(url, http_client=web)
            async with Client(streams, mode=mode, **more) as client:
                yield client


async def keep(client: Client, text: str) -> str:
    """Gives a text to the server `frail`, which answers with all that it was given."""
    result = await client.call_tool("frail__keep", {"text": text})
    assert not result.is_error, result.content
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


async def until(holds: Callable[[], object], seconds: float = 30) -> None:
    """Waits until something holds that other processes bring about."""
    with anyio.fail_after(seconds):
        while not holds():  # noqa: ASYNC110  # other processes bring it about
            await anyio.sleep(0.02)
