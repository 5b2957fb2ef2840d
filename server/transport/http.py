"""The HTTP transports, Server-Sent Events and Streamable HTTP, also for one caller alone."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import math
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from itertools import count, dropwhile
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

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
from server.settings_file import SettingsError
from server.transport.connections import GuardedConnection, accept, quieten
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

TOKEN_LENGTH = 24
TOKEN_CHARACTERS = 8

BACKLOG = 512
"""Maximum number of connections waiting to be accepted."""

MakeRoute = Callable[[TransportSecuritySettings], Route]
"""Makes a route that checks headers by these settings."""

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")

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
        """Starts listening; uvicorn would accept connections even when there is no place."""
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


def listen(http: HttpSettings) -> socket.socket:
    """Opens the listening socket."""
    family, address = _resolve(http)
    is_open = not (http.token or http.tokens or http.issuer)
    if is_open and not _is_loopback(address):
        raise SettingsError(
            f"http.host = {http.host!r} can be reached from other machines, so a token is needed: "
            "set TOOLCRIB_HTTP__TOKEN, or listen on 127.0.0.1."
        )
    if http.issuer and not (http.resource or _is_loopback(address)):
        raise SettingsError(
            f"http.host = {http.host!r} does not say by which URL clients reach this server, and "
            "access tokens are issued for it: set http.resource, for example https://name/mcp."
        )
    if not _is_loopback(address):
        _check_strength(http)
    try:
        listener = socket.create_server((address, http.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"failed: {error.strerror}"
        raise SettingsError(
            f"Listening on {http.host} port {http.port} {reason}. Choose another with --port; "
            "port 0 picks a free one."
        ) from error
    # A response is sent in two pieces: the second would wait 40 ms for the client's delayed ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _check_strength(http: HttpSettings) -> None:
    """Rejects tokens that can be guessed."""
    named = {f"http.tokens.{name}.token": each.token for name, each in http.tokens.items()}
    for name, secret in {"http.token": http.token, **named}.items():
        if secret is None:
            continue
        token = secret.get_secret_value()
        repeats = token in (token + token)[1:-1]
        if len(token) < TOKEN_LENGTH or repeats or len(set(token)) < TOKEN_CHARACTERS:
            raise SettingsError(
                f"{name} ({len(token)} characters, {len(set(token))} different ones) is too easy to"
                f" guess for http.host = {http.host!r}, which other machines can reach. It needs at"
                f" least {TOKEN_LENGTH} characters, {TOKEN_CHARACTERS} different ones, and no"
                ' repetition. Make one with: python -c "import secrets;'
                ' print(secrets.token_urlsafe(32))"'
            )


def address_of(listener: socket.socket) -> str:
    """Returns host and port of the socket, as in a URL."""
    address, port = listener.getsockname()[:2]
    return f"{_bracket(address)}:{port}"


def allowed_callers(http: HttpSettings, listener: socket.socket) -> TransportSecuritySettings:
    """Returns the accepted Host and Origin headers: loopback, our own address, the settings'.

    Others come from web pages whose DNS names point to this machine (DNS rebinding).
    """
    own = (http.host, _bracket(listener.getsockname()[0]))
    names = dict.fromkeys((*_LOOPBACK_NAMES, *own))
    hosts = [pattern for name in names for pattern in (name, f"{name}:*")]
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, urlsplit(http.resource).netloc, *http.allowed_hosts],
        allowed_origins=[*(f"http://{host}" for host in hosts), *http.allowed_origins],
    )


def _resolve(http: HttpSettings) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(http.host, http.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"http.host = {http.host!r} is not an address: {error}.") from error
    # "localhost" is both; clients that fail on ::1 try 127.0.0.1, but not the reverse.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, str(address[0])


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _bracket(address: str) -> str:
    return f"[{address}]" if ":" in address else address


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
