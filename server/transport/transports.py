"""The three ways in: stdio, Server-Sent Events and Streamable HTTP.

Each takes `running`, the context in which the background work runs, and enters it exactly once,
whatever the number of connections.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from server.opening.opening import Heard, Opening
from server.settings.http import HttpSettings
from server.transport.auth import BearerTokens, callers_of
from server.transport.authority import SoundAuthority
from server.transport.drain import Drain
from server.transport.lines import messages
from server.transport.listener import address_of, allowed_callers, listen
from server.transport.pipes import Outlet, lines_of
from server.transport.signals import stopped_by_signals
from server.transport.stdio import take_streams

__all__ = ["serve_http", "serve_sse", "serve_stdio"]

HTTP_PATH = "/mcp"
SSE_PATH = "/sse"
MESSAGES_PATH = "/messages/"
DRAIN_SECONDS = 2
"""How long cancelled requests may take to end."""

_logger = logging.getLogger("toolcrib")


async def serve_stdio(
    server: Server[Any],
    running: AbstractAsyncContextManager[Any],
    opening: Opening | None = None,
) -> None:
    """Serves one client over stdin and stdout until it closes them or a signal comes.

    Args:
        server: What answers.
        running: Entered around all of it.
        opening: What has listened to the client until now; None if nothing has.

    Raises:
        SettingsError: If the process was started without stdin and stdout.
    """
    heard = Heard() if opening is None else opening.end()
    source, sink = take_streams()
    outlet = Outlet(sink)
    lines = lines_of(source, before=heard.data)
    reader, writer = messages(lines, outlet.write, answered=heard.answered)
    serving = anyio.CancelScope()
    stop = partial(asyncio.get_running_loop().call_soon_threadsafe, serving.cancel)
    async with running:
        try:
            with stopped_by_signals(stop):
                async with anyio.create_task_group() as group:
                    group.start_soon(outlet.run)
                    with serving:
                        await server.run(reader, writer, server.create_initialization_options())
                    group.cancel_scope.cancel()
        except* BrokenPipeError:
            _logger.info("The client closed the connection before its last answer.")


async def serve_http(
    server: Server[Any], http: HttpSettings, running: AbstractAsyncContextManager[Any]
) -> None:
    """Serves Streamable HTTP at `/mcp` until a signal comes.

    Args:
        server: What answers.
        http: Where to listen, and whom to answer.
        running: Entered around all of it.

    Raises:
        SettingsError: If the address cannot or must not be listened on.
    """

    def make_app(security: TransportSecuritySettings) -> ASGIApp:
        return server.streamable_http_app(
            streamable_http_path=HTTP_PATH, transport_security=security
        )

    await _serve(make_app, f"Streamable HTTP at %s{HTTP_PATH}", http, running)


async def serve_sse(
    server: Server[Any], http: HttpSettings, running: AbstractAsyncContextManager[Any]
) -> None:
    """Serves Server-Sent Events at `/sse`, with messages to `/messages/`, until a signal comes.

    Args:
        server: What answers.
        http: Where to listen, and whom to answer.
        running: Entered around all of it.

    Raises:
        SettingsError: If the address cannot or must not be listened on.
    """

    def make_app(security: TransportSecuritySettings) -> ASGIApp:
        transport = SseServerTransport(MESSAGES_PATH, security)
        connect = _SseConnection(server, transport, security)
        return Starlette(
            routes=[
                Route(SSE_PATH, connect, methods=["GET"]),
                Mount(MESSAGES_PATH, transport.handle_post_message),
            ]
        )

    await _serve(make_app, f"Server-Sent Events at %s{SSE_PATH}", http, running)


class _SseConnection:
    """ASGI application that serves one client for as long as it keeps its stream open."""

    def __init__(
        self,
        server: Server[Any],
        transport: SseServerTransport,
        security: TransportSecuritySettings,
    ) -> None:
        self._server = server
        self._transport = transport
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers `GET /sse`."""
        # Before the transport does: it raises after it has refused, which would be logged as ours.
        refusal = await self._security.validate_request(Request(scope, receive))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        async with self._transport.connect_sse(scope, receive, send) as (reader, writer):
            await self._server.run(reader, writer, self._server.create_initialization_options())


class _DrainingServer(uvicorn.Server):
    """Uvicorn, which otherwise waits for every open stream before it ends."""

    def __init__(self, config: uvicorn.Config, drain: Drain) -> None:
        super().__init__(config)
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the requests in flight, then the server."""
        self._drain.end_all()
        await super().shutdown(sockets)


async def _serve(
    make_app: Callable[[TransportSecuritySettings], ASGIApp],
    announcement: str,
    http: HttpSettings,
    running: AbstractAsyncContextManager[Any],
) -> None:
    with listen(http) as listener:
        app = make_app(allowed_callers(http, listener))
        if callers := callers_of(http):
            app = BearerTokens(app, callers)
        _logger.info(announcement, f"http://{address_of(listener)}")
        await _run(Drain(SoundAuthority(app)), listener, running)


async def _run(
    drain: Drain, listener: socket.socket, running: AbstractAsyncContextManager[Any]
) -> None:
    config = uvicorn.Config(
        drain,
        http="h11",  # the faster httptools takes headers without end, before any token is asked
        log_config=None,
        access_log=False,
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    # uvicorn raises the signal that ended it again, which must not cut short what `running` ends.
    async with running:
        with stopped_by_signals(lambda: None):
            await _DrainingServer(config, drain).serve(sockets=[listener])
