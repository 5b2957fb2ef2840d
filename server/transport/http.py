"""The HTTP transports, Server-Sent Events and Streamable HTTP, also for one caller alone."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from itertools import count, dropwhile
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http import (
    MCP_SESSION_ID_HEADER,
    EventCallback,
    EventMessage,
    EventStore,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from server.settings.http import HttpSettings
from server.transport.connections import GuardedConnection, accept, quieten
from server.transport.listening import address_of, allowed_callers, listen
from server.transport.middleware import BearerTokens, Caller, Drain, SoundAuthority, callers_of
from server.transport.signals import stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server.transport.resource_server import MakeClient


RETRY_MS = 1_000
"""Time after which a client that lost its stream reconnects."""

RETURN_SECONDS = 30.0
"""Time for a client that lost its stream to come back; then its session ends."""

MOST = 100
"""Maximum number of stored messages per session."""


class RecentEvents(EventStore):
    """The latest messages of one session."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._events: deque[tuple[str, str, types.JSONRPCMessage | None]] = deque(maxlen=MOST)

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        """Stores a message, or the empty event that starts a stream; returns its id."""
        event_id = str(next(self._numbers))
        self._events.append((event_id, stream_id, message))
        return event_id

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        """Sends the messages of a stream after an event.

        Returns:
            The stream, if more may follow; None if it has ended or the event is no longer stored.
        """
        events = dropwhile(lambda each: each[0] != last_event_id, tuple(self._events))
        _, stream, last = next(events, ("", None, None))
        for event_id, stream_id, message in events:
            if stream_id == stream and message is not None:
                last = message
                await send_callback(EventMessage(message, event_id))
        return None if isinstance(last, types.JSONRPCResponse | types.JSONRPCError) else stream


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's sessions with a separate event store for each.

    The SDK shares one store, in which streams are identified by request ids alone: a client could
    get the messages of another.
    """

    @property
    def event_store(self) -> EventStore:
        """A new store: the SDK reads this property once per session."""
        return RecentEvents()

    @event_store.setter
    def event_store(self, _given: EventStore | None) -> None:
        """Ignores a shared store."""

    async def _handle_stateful_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ends a session soon after its stream, unless its client comes back."""
        try:
            await super()._handle_stateful_request(scope, receive, send)
        finally:
            session_id = Headers(scope=scope).get(MCP_SESSION_ID_HEADER, "")
            transport = self._server_instances.get(session_id)
            if scope["method"] == "GET" and transport is not None:
                idle = transport.idle_scope
                if idle is not None and idle.deadline < math.inf:  # it has no other request
                    idle.deadline = min(idle.deadline, anyio.current_time() + RETURN_SECONDS)


HTTP_PATH = "/mcp"
SSE_PATH = "/sse"
_NAMES = {HTTP_PATH: "Streamable HTTP", SSE_PATH: "Server-Sent Events"}
MESSAGES_PATH = "/messages/"
DRAIN_SECONDS = 2
"""Time for cancelled requests to end."""

MakeRoute = Callable[[TransportSecuritySettings], Route]
"""Makes a route that checks headers by these settings."""

_logger = logging.getLogger("toolcrib")


async def serve_http(
    server: Server[Any],
    http: HttpSettings,
    running: AbstractAsyncContextManager[Any],
    more: MakeRoute | None = None,
    make_client: MakeClient | None = None,
) -> None:
    """Serves Streamable HTTP at `/mcp`, and one more route, until a signal arrives."""
    make_app = partial(streamable_http_app, server, more=more)
    await _serve(make_app, HTTP_PATH, http, running, make_client)


def streamable_http_app(
    server: Server[Any], security: TransportSecuritySettings, more: MakeRoute | None = None
) -> Starlette:
    """Builds the ASGI application of `serve_http`: both eras; the older can resume streams."""
    sessions = ResumableSessions(server, security_settings=security, retry_interval=RETRY_MS)
    routes = [Route(HTTP_PATH, sessions.asgi_app), *([more(security)] if more else [])]
    return Starlette(routes=routes, lifespan=lambda _app: sessions.run())


async def serve_sse(
    server: Server[Any],
    http: HttpSettings,
    running: AbstractAsyncContextManager[Any],
    make_client: MakeClient | None = None,
) -> None:
    """Serves Server-Sent Events at `/sse` and `/messages/` until a signal arrives."""

    def make_app(security: TransportSecuritySettings) -> ASGIApp:
        transport = SseServerTransport(MESSAGES_PATH, security)
        connect = _SseConnection(server, transport, security)
        return Starlette(
            routes=[
                Route(SSE_PATH, connect, methods=["GET"]),
                Mount(MESSAGES_PATH, transport.handle_post_message),
            ]
        )

    await _serve(make_app, SSE_PATH, http, running, make_client)


class _SseConnection:
    """ASGI application that serves one client while its stream is open."""

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
        """Handles `GET /sse`."""
        # Checked first: the transport raises after its refusal, which would be logged as our error.
        refusal = await self._security.validate_request(Request(scope, receive))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        async with self._transport.connect_sse(scope, receive, send) as (reader, writer):
            await self._server.run(reader, writer, self._server.create_initialization_options())


class DrainingServer(uvicorn.Server):
    """A uvicorn server that ends open streams instead of waiting for them."""

    def __init__(self, drain: Drain) -> None:
        config = uvicorn.Config(
            drain,
            http=GuardedConnection,
            log_config=None,
            access_log=False,
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        super().__init__(config)
        self._drain = drain
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts listening; uvicorn would accept connections even when all places are taken."""
        quieten()
        await super().startup([])
        make = partial(
            GuardedConnection,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        for each in sockets or ():
            each.setblocking(False)  # noqa: FBT003  # as of socket
            accepting = accept(each, make, self.server_state.connections)
            self._accepting.append(asyncio.create_task(accepting))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the requests in flight, then the server."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        self._drain.end_all()
        await super().shutdown(sockets)


async def _serve(
    make_app: Callable[[TransportSecuritySettings], ASGIApp],
    path: str,
    http: HttpSettings,
    running: AbstractAsyncContextManager[Any],
    make_client: MakeClient | None,
) -> None:
    with listen(http) as listener:
        security = allowed_callers(http, listener)
        app, url = make_app(security), f"http://{address_of(listener)}{path}"
        otherwise = None
        if http.issuer and make_client is not None:
            from server.transport.resource_server import ResourceServer

            resource = http.resource or url
            otherwise = ResourceServer(app, http, resource, security, make_client)
        if (callers := callers_of(http)) or http.issuer:
            app = BearerTokens(app, callers, otherwise)
        _logger.info("%s at %s", _NAMES[path], url)
        if otherwise is not None:
            _logger.info("Accepts access tokens of %s for %s", http.issuer, resource)
        server = DrainingServer(Drain(SoundAuthority(app)))
        # uvicorn raises its signal again at the end, which must not interrupt `running`'s exit.
        async with running:
            with stopped_by_signals(lambda: None):
                await server.serve(sockets=[listener])


START_SECONDS = 20.0


@asynccontextmanager
async def serve_one(server: Server[Any], caller: Caller, token: str) -> AsyncIterator[str]:
    """Serves one caller for the duration of the block; then cancels its open requests.

    Yields:
        The address, `host:port`.
    """
    http = HttpSettings(port=0)
    with listen(http) as listener:
        app = streamable_http_app(server, allowed_callers(http, listener))
        tokens = BearerTokens(app, [(SecretStr(token), caller)])
        serving = _Server(Drain(SoundAuthority(tokens)))
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
    """A server inside another program, which keeps its own signal handling."""

    def __init__(self, drain: Drain) -> None:
        super().__init__(drain)
        self.ready = anyio.Event()

    async def startup(self, sockets: Any = None) -> None:  # noqa: ANN401  # as of uvicorn
        """Starts listening."""
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the surrounding program."""
        yield
