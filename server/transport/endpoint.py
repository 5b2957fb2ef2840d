"""An endpoint of its own for one caller: Streamable HTTP on loopback, for one token."""

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
    """Serves one caller as long as the block lasts; all that it still asks ends with it.

    Args:
        server: What is served.
        caller: Who asks.
        token: What its requests have to carry.

    Yields:
        Where it is, `host:port`.
    """
    http = HttpSettings(port=0)
    with listen(http) as listener:
        app = streamable_http_app(server, allowed_callers(http, listener))
        drain = Drain(SoundAuthority(BearerTokens(app, [(SecretStr(token), caller)])))
        serving = _Server(uvicorn_config(drain), drain)
        # A task of its own, whose end no call that asks through it has to be within.
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
    """A server within another program, whose signals are not its own.

    Attributes:
        ready: Set once it listens.
    """

    def __init__(self, config: uvicorn.Config, drain: Drain) -> None:
        super().__init__(config, drain)
        self.ready = anyio.Event()

    async def startup(self, sockets: Any = None) -> None:  # noqa: ANN401  # as of uvicorn
        """Listens."""
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to whoever has them."""
        yield
