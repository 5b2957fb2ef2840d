"""An HTTP proxy that connects only to checked addresses of allowed hosts.

It is for programs that make their own connections, such as confined programs and a search library
that imitates a browser's TLS handshake: whatever they contact, each socket is opened here.
"""

from __future__ import annotations

import base64
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from tools.core.errors import PermissionDeniedError, ToolError
from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.hosts import join_host_port, literal
from tools.sandbox.web.proxy_request import (
    ProxyRequest,
    RefusedRequestError,
    name_problem,
    read_request,
)
from tools.sandbox.web.relay import BROKEN, Exchange, Idle, tunnel

LOOPBACK = "127.0.0.1"
USER = "toolcrib"

LINGER_SECONDS = 2.0
LINGER_BYTES = 1_000_000  # limit on the bytes read of a request after answering it
ACCEPT_DELAY = 0.5  # delay before trying again to accept a client, in seconds

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyLimits:
    """Limits of a proxy."""

    connections: int = 64  # simultaneous clients; further ones wait without using a descriptor
    head_seconds: float = 10.0  # time limit for receiving a request's head
    connect_seconds: float = 15.0  # time limit for resolving and connecting to a target
    idle_seconds: float = 300.0  # idle time after which a connection is closed


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """The loopback address of a proxy."""

    host: str
    port: int
    token: str = field(repr=False)  # password of the user "toolcrib"

    @property
    def url(self) -> str:
        """The URL for programs, with the token."""
        return f"http://{USER}:{self.token}@{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused target."""

    host: str
    port: int
    why: str
    is_allowed: bool  # whether the name is allowed, and only an address is not
    asked_at: str  # the local address that the client connected to
    names_another: bool = False  # whether it is allowed, but TLS names another server


class GuardedProxy:
    """Serves CONNECT and plain http requests, one per connection.

    `checks_names` requires that TLS in a tunnel to a name names the same server.
    """

    def __init__(
        self,
        guard: AddressGuard,
        *,
        allowed: Callable[[str, int], bool],
        limits: ProxyLimits | None = None,
        checks_names: bool = False,
        on_refusal: Callable[[Refusal], object] = lambda _refusal: None,
    ) -> None:
        self._guard = guard
        self._allowed = allowed
        self._checks_names = checks_names
        self._on_refusal = on_refusal
        self._limits = limits or ProxyLimits()
        self._room = anyio.Semaphore(self._limits.connections)
        self._credentials = b""
        """Required Proxy-Authorization; empty if no authentication is needed."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ProxyAddress]:
        """Serves on loopback until the block ends, which closes every connection.

        Clients need a random token. Supports one block at a time.
        """
        failure: Exception | None = None
        listening = socket.create_server((LOOPBACK, 0))
        async with await SocketListener.from_socket(listening) as listener:
            port: int = listening.getsockname()[1]
            address = ProxyAddress(LOOPBACK, port, secrets.token_urlsafe(24))
            pair = base64.b64encode(f"{USER}:{address.token}".encode())
            self._credentials = b"Basic " + pair
            async with anyio.create_task_group() as group:
                group.start_soon(self.serve, listener)
                try:
                    yield address
                except Exception as error:  # noqa: BLE001  # a task group would wrap it
                    failure = error
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def serve(self, listener: SocketListener, target: tuple[str, int] | None = None) -> None:
        """Serves all clients of a listener until cancelled, which closes every connection.

        `target` is for all connections; None if each request names its own.
        """
        async with anyio.create_task_group() as group:
            while True:
                await self._room.acquire()
                try:
                    client = await listener.accept()
                except OSError:  # the system has no descriptors left, or the client is gone
                    self._room.release()
                    await anyio.sleep(ACCEPT_DELAY)
                else:
                    group.start_soon(self._serve, target, client)

    async def _serve(self, target: tuple[str, int] | None, client: SocketStream) -> None:
        """Serves one connection; its errors do not affect others."""
        try:
            async with client:
                await self._answer(client, target)
        except (anyio.EndOfStream, *BROKEN):
            pass  # the client has left
        except Exception:
            _logger.exception("A connection of the proxy broke")
        finally:
            self._room.release()

    async def _answer(self, client: SocketStream, target: tuple[str, int] | None) -> None:
        try:
            if target is None:
                await self._do_as_asked(client)
            else:
                async with await self._connect(*target, client) as upstream:
                    await tunnel(client, upstream, b"", Idle(self._limits.idle_seconds))
        except RefusedRequestError as refusal:
            await _refuse(client, refusal)

    async def _do_as_asked(self, client: SocketStream) -> None:
        request = await self._request(client)
        async with await self._connect(request.host, request.port, client) as upstream:
            idle = Idle(self._limits.idle_seconds)
            if request.is_tunnel:
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                judge = partial(self._may_send, request, client)
                await tunnel(client, upstream, request.rest, idle, judge)
            else:
                await Exchange(request, client, idle).forward(upstream)
                await _linger(client)

    async def _request(self, client: SocketStream) -> ProxyRequest:
        try:
            with anyio.fail_after(self._limits.head_seconds):
                request = await read_request(client)
        except TimeoutError:
            raise RefusedRequestError(408, "The head took too long.") from None
        given = request.credentials.encode("latin-1")
        if self._credentials and not secrets.compare_digest(given, self._credentials):
            raise RefusedRequestError(407, "The proxy requires its token.")
        return request

    async def _connect(self, host: str, port: int, client: SocketStream) -> SocketStream:
        where = join_host_port(host, port)
        asked_at = _local_host(client)
        if not self._allowed(host, port):
            why = f"{where} is not among the hosts that are allowed."
            raise self._forbidden(Refusal(host, port, why, is_allowed=False, asked_at=asked_at))
        try:
            return await self._guard.connect(host, port, timeout=self._limits.connect_seconds)
        except TimeoutError:
            raise RefusedRequestError(504, f"{where} does not answer in time.") from None
        except PermissionDeniedError as error:
            refusal = Refusal(host, port, error.message, is_allowed=True, asked_at=asked_at)
            raise self._forbidden(refusal) from None
        except (ToolError, OSError) as error:
            raise RefusedRequestError(502, f"{where} cannot be reached: {error}.") from None

    def _may_send(self, request: ProxyRequest, client: SocketStream, sent: bytes) -> bool | None:
        """Returns whether a client may send this in a tunnel; None if undecided yet."""
        if not self._checks_names or literal(request.host):
            return True
        problem = name_problem(sent, request.host)
        if problem:
            why = f"It asked the proxy for {request.where}, but {problem}."
            refusal = Refusal(
                request.host,
                request.port,
                why,
                is_allowed=True,
                asked_at=_local_host(client),
                names_another=True,
            )
            self._on_refusal(refusal)
        return None if problem is None else not problem

    def _forbidden(self, refusal: Refusal) -> RefusedRequestError:
        self._on_refusal(refusal)
        return RefusedRequestError(403, refusal.why)


def _local_host(client: SocketStream) -> str:
    return str(client.extra(SocketAttribute.local_address)[0])  # noqa: S610  # not a Django query


async def _refuse(client: SocketStream, refusal: RefusedRequestError) -> None:
    body = f"{refusal.text}\n".encode()
    status = HTTPStatus(refusal.status)
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if status is HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        lines.append(f'Proxy-Authenticate: Basic realm="{USER}"')
    await client.send("\r\n".join([*lines, "", ""]).encode() + body)
    await _linger(client)


async def _linger(client: SocketStream) -> None:
    """Reads a little further: a reset could discard the response while the client is sending."""
    with anyio.move_on_after(LINGER_SECONDS), suppress(anyio.EndOfStream):
        await client.send_eof()
        left = LINGER_BYTES
        while left > 0:
            left -= len(await client.receive())
