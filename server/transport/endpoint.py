"""A separate endpoint for one caller: Streamable HTTP on loopback with one token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from pydantic import SecretStr

from server.settings.http import HttpSettings
from server.transport.http import (
    DrainingServer,
    address_of,
    allowed_callers,
    listen,
    streamable_http_app,
    uvicorn_config,
)
from server.transport.middleware import BearerTokens, Caller, Drain, SoundAuthority

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 20.0


@asynccontextmanager
async def serve_one(server: Server[Any], caller: Caller, token: str) -> AsyncIterator[str]:
    """Serves one caller for the duration of the block; then cancels its open requests.

    Args:
        server: The server.
        caller: The caller.
        token: The bearer token of its requests.

    Yields:
        The address, `host:port`.
    """
    http = HttpSettings(port=0)
    with listen(http) as listener:
        app = streamable_http_app(server, allowed_callers(http, listener))
        drain = Drain(SoundAuthority(BearerTokens(app, [(SecretStr(token), caller)])))
        serving = _Server(uvicorn_config(drain), drain)
        # A separate task: its end must not depend on a call made through it.
        task = asyncio.create_task(serving.serve(sockets=[listener]))
        try:
            with anyio.fail_after(START_SECONDS):
                await serving.ready.wait()
            yield address_of(listener)
        finally:
            serving.should_exit = True
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])


class _Server(DrainingServer):
    """A server inside another program, which keeps its own signal handling.

    Attributes:
        ready: Set once it listens.
    """

    def __init__(self, config: uvicorn.Config, drain: Drain) -> None:
        super().__init__(config, drain)
        self.ready = anyio.Event()

    async def startup(self, sockets: Any = None) -> None:  # noqa: ANN401  # as of uvicorn
        """Starts listening."""
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the surrounding program."""
        yield
