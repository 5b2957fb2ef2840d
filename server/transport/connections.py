"""Connections of the HTTP transports: limits, timeouts and strict request parsing."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import h11
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Timeout for a whole request head."""

GRACE_SECONDS = 1.0
"""Time in which a request may be incomplete, however many more of its peer are."""

BODY_SECONDS = 30.0
"""Timeout for a request body, extended for long ones."""

BODY_BYTES_PER_SECOND = 10_000

MOST_CONNECTIONS = 512
"""Maximum number of connections, if the limit of open files allows it."""

OTHER_FILES = 96
"""Open files that are not connections: the record, the vector index, other processes."""

MOST_REFUSED = 16
"""Further connections whose request is awaited, to be answered 503."""

WAIT_SECONDS = 5.0
"""Time that a new connection waits for a place; after it, its request is answered 503."""

RETRY_SECONDS = 0.02
"""Time after which a place is looked for again."""

QUIET_SECONDS = 600.0
"""Time without repetition of a log message that any peer can cause."""

_FULL = PlainTextResponse(
    "This server has no room for another connection. Try again in a moment.\n",
    503,
    {"Connection": "close", "Retry-After": "1"},
)
_NO_STREAM = PlainTextResponse(
    "This server has no room for another stream of notifications; requests are answered.\n",
    405,
    {"Allow": "POST, DELETE"},
)
_UNSOUND_LINES = re.compile(rb"(?<!\r)\n|\r(?!\n)|\n[ \t]")
_LENGTH = re.compile(rb"\ncontent-length:[ \t]*([^\r]*)", re.IGNORECASE)

_NOISY = (
    "uvicorn.error",
    "mcp.server.sse",
    "mcp.server.streamable_http",
    "mcp.server.transport_security",
)

_logger = logging.getLogger("toolcrib.http")


class _StrictRequests(h11.Connection):
    """Parses requests, and rejects those that another parser could read differently.

    h11 prefers `Transfer-Encoding` to `Content-Length`, joins folded lines, accepts a bare line
    feed as a line end, and merges equal lengths (RFC 9112, 2.2, 5.2 and 6.3).
    """

    def next_event(self) -> Any:  # noqa: ANN401  # as of h11
        """Returns the next complete event."""
        head = b""
        if self.their_state is h11.IDLE:
            head, end, _ = bytes(self.trailing_data[0]).partition(b"\r\n\r\n")
            if _UNSOUND_LINES.search(head if end else head.rstrip(b"\r")):
                raise h11.RemoteProtocolError("A line of the request's head is malformed.")
        event = super().next_event()
        if isinstance(event, h11.Request):
            lengths = _LENGTH.findall(head)
            is_chunked = any(name == b"transfer-encoding" for name, _ in event.headers)
            if len(lengths) > 1 or b"," in b"".join(lengths):
                raise h11.RemoteProtocolError("The request has more than one Content-Length.")
            if is_chunked and (lengths or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("Transfer-Encoding is not the only framing.")
        return event


class GuardedConnection(H11Protocol):
    """A connection that is closed if a request is late, or if others need its place.

    A connection counts as waiting until a whole request has arrived, and again after its response;
    only then can it lose its place. So complete requests always get in, no matter how many
    connections are held open. Responses in progress, such as streams, have no deadline.

    When few places are left, connections end with their response, and clients get no stream of
    notifications (405), which the protocol allows. When none is left, new connections wait.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  # uvicorn's, passed on
        super().__init__(*args, **options)
        self.conn = _StrictRequests(h11.SERVER)
        self.since = time.monotonic()
        self._deadline: asyncio.TimerHandle | None = None
        self._received = 0
        self._is_ahead = False
        self.is_stream = False
        self._app, self.app = self.app, self._respond
        self.is_refused = False

    @property
    def is_waiting(self) -> bool:
        """Whether no complete request is in progress, or too many were sent ahead."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered or self._is_ahead or self.conn.their_state is h11.SEND_BODY

    @property
    def is_idle(self) -> bool:
        """True if its client is between two requests."""
        is_answered = self.cycle is not None and self.cycle.response_complete
        has_no_more = self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        return is_answered and has_no_more

    @property
    def is_late(self) -> bool:
        """True if a request has been incomplete for long."""
        return not self.is_idle and time.monotonic() - self.since > GRACE_SECONDS

    @property
    def peer(self) -> str:
        """The address of the peer."""
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as of uvicorn
        """Takes a place, or that of a waiting connection of the same peer."""
        super().connection_made(transport)
        self._restart(HEAD_SECONDS)
        _limit(self, self.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees the place."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts the bytes and parses them."""
        self._received += len(data)
        super().data_received(data)

    def handle_events(self) -> None:
        """Sets the deadline for what must arrive next."""
        before = self.conn.their_state
        super().handle_events()
        state, is_more = self.conn.their_state, bool(self.conn.trailing_data[0])
        self._is_ahead = is_more and state is h11.DONE  # no real client sends requests ahead
        if state is h11.IDLE:
            if self._deadline is None and is_more:
                self._restart(HEAD_SECONDS)
        elif state is h11.SEND_BODY:
            if before is not h11.SEND_BODY:
                self._restart(BODY_SECONDS)
        else:
            self._stop()

    def on_response_complete(self) -> None:
        """Waits for the next request, within uvicorn's keep-alive time."""
        self.since = time.monotonic()
        super().on_response_complete()

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        app, most, headers = self._app, most_connections(), Headers(scope=scope)
        if len(self.connections) > most * 3 // 4:
            scope["headers"].append(CLOSE_HEADER)  # then uvicorn's response has it too
        if self.is_refused:
            app = _FULL
        elif scope["method"] == "GET" and "mcp-session-id" in headers:
            streams = sum(each.is_stream for each in self._all())
            if streams >= most // 4 and "last-event-id" not in headers:  # else it awaits an answer
                app = _NO_STREAM
            self.is_stream = app is self._app
        try:
            await app(scope, receive, send)
        finally:
            self.is_stream = False

    def refuse(self) -> None:
        """Answers the next request 503."""
        self.is_refused = True
        refused = [each for each in self._all() if each.is_refused]
        if len(refused) > MOST_REFUSED:
            min(refused, key=lambda each: each.since).give_up()

    def give_up(self) -> None:
        """Aborts the connection."""
        self._stop()
        self.transport.abort()

    def _all(self) -> list[GuardedConnection]:
        return [each for each in self.connections if isinstance(each, GuardedConnection)]

    def _restart(self, seconds: float) -> None:
        self._stop()
        self.since, self._received = time.monotonic(), 0
        self._deadline = self.loop.call_later(seconds, self._check)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _check(self) -> None:
        """Aborts the connection, unless a long body arrives fast enough or waits for us."""
        left = 0.0
        if self.conn.their_state is h11.SEND_BODY:
            allowed = BODY_SECONDS + self._received / BODY_BYTES_PER_SECOND
            left = self.since + allowed - time.monotonic()
            if self.flow.read_paused:
                left = max(left, BODY_SECONDS)
        if left > 0:
            self._deadline = self.loop.call_later(left, self._check)
        else:
            self.give_up()


def most_connections() -> int:
    """Returns how many connections may be open, by the limit of open files."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(MOST_CONNECTIONS, max(files // 4, files - OTHER_FILES))


async def accept(
    listener: socket.socket, make: Callable[[], GuardedConnection], known: Collection[object]
) -> None:
    """Accepts connections, each once there is a place, which may be that of an idle or late one.

    Clients wait until then. If no place becomes free, the connection is accepted to be refused.
    """
    loop, had_place = asyncio.get_running_loop(), time.monotonic()
    while True:
        while len(there := _open(known)) >= most_connections():
            if time.monotonic() - had_place > WAIT_SECONDS:
                break
            _warn(there)
            held = Counter(each.peer for each in there)
            free = [each for each in there if each.is_waiting and (each.is_idle or each.is_late)]
            if free:
                max(free, key=lambda each: (held[each.peer], -each.since)).give_up()
            else:
                await asyncio.sleep(RETRY_SECONDS)
        else:
            had_place = time.monotonic()
        try:
            accepted, _ = await loop.sock_accept(listener)
            await loop.connect_accepted_socket(make, accepted)
        except OSError as error:
            _logger.warning("No connection can be accepted: %s.", error)
            await asyncio.sleep(GRACE_SECONDS)


def _open(known: Collection[object]) -> list[GuardedConnection]:
    everyone = [each for each in known if isinstance(each, GuardedConnection)]
    return [each for each in everyone if not (each.transport.is_closing() or each.is_refused)]


def _warn(there: Sequence[GuardedConnection]) -> None:
    ((peer, count),) = Counter(each.peer for each in there).most_common(1)
    _logger.warning(
        "Too many connections: %d from %s; at most %d are served at once (ulimit -n: %d).",
        *(count, peer, most_connections(), resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    )


def _limit(new: GuardedConnection, connections: Collection[object]) -> None:
    """Keeps a peer from taking most places, and refuses a connection that found none."""
    most, there = most_connections(), _open(connections)
    own = [each for each in there if each.peer == new.peer]
    waiting = [each for each in own if each.is_waiting and each is not new]
    late = [each for each in waiting if each.is_late]
    if len(own) > most // 2 and not _is_loopback(new.peer):
        _warn(own)
        if waiting:
            min(waiting, key=lambda each: each.since).give_up()
        else:
            new.refuse()
    elif len(there) > most:
        new.refuse()
    elif len(late) >= most // 4:
        min(late, key=lambda each: each.since).give_up()


def _is_loopback(address: str) -> bool:
    return not address or ipaddress.ip_address(address.partition("%")[0]).is_loopback


class _Once(logging.Filter):
    """Keeps warnings that any peer can cause from filling the log."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Suppresses repeated messages for a while; errors pass, unless a peer disconnected."""
        if record.exc_info and isinstance(record.exc_info[1], ClientDisconnect):
            return False
        place, now = (record.pathname, record.lineno), time.monotonic()
        is_repeated = now - self._last.get(place, -QUIET_SECONDS) < QUIET_SECONDS
        if record.levelno >= logging.ERROR or not is_repeated:
            self._last[place] = now
            return True
        return False


def quieten() -> None:
    """Rate-limits log messages that any peer can cause."""
    for each in (_logger, *map(logging.getLogger, _NOISY)):
        if not any(isinstance(known, _Once) for known in each.filters):
            each.addFilter(_Once())
