"""An HTTP proxy of ours: it connects to judged addresses alone, and only where it is allowed.

For what makes its own connections, such as confined programs and a search library with the TLS
handshake of a browser: wherever they turn, each socket is opened here.
"""

from __future__ import annotations

import base64
import logging
import secrets
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import anyio
from anyio.abc import Listener, SocketAttribute, SocketStream, UNIXSocketStream

from tools.core.errors import PermissionDeniedError, ToolError
from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.proxy.proxy_request import ProxyRequest, RefusedRequestError, read_request
from tools.sandbox.web.proxy.relay import BROKEN, Exchange, Idle, tunnel

__all__ = ["GuardedProxy", "ProxyAddress", "ProxyLimits"]

LOOPBACK = "127.0.0.1"
USER = "toolcrib"

LINGER_SECONDS = 2.0
LINGER_BYTES = 1_000_000
"""What is still read of a request once it is answered."""

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyLimits:
    """What one proxy bears.

    Attributes:
        connections: Clients at once; more are answered 503.
        head_seconds: Until a request's head has to be there.
        connect_seconds: Over looking up and connecting to a target.
        idle_seconds: How long nothing may be passed on before a connection is closed.
    """

    connections: int = 128
    head_seconds: float = 10.0
    connect_seconds: float = 15.0
    idle_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """Where a proxy serves: on loopback with a token, or on a Unix socket.

    Attributes:
        host: Loopback address; empty for a Unix socket.
        port: TCP port; 0 for a Unix socket.
        token: Password of the user "toolcrib"; empty for a Unix socket.
        path: The Unix socket; None on loopback.
    """

    host: str = ""
    port: int = 0
    token: str = field(default="", repr=False)
    path: Path | None = None

    @property
    def url(self) -> str:
        """The form that programs take, token included; of the form on loopback only."""
        return f"http://{USER}:{self.token}@{self.host}:{self.port}"


class GuardedProxy:
    """Serves CONNECT and plain http requests, one a connection.

    Args:
        guard: Opens every connection.
        allowed: Whether a host, in its canonical form, and a port may be asked for at all.
        limits: What it bears.
        on_refusal: Is given the reason where a target may not be asked for.
    """

    def __init__(
        self,
        guard: AddressGuard,
        *,
        allowed: Callable[[str, int], bool],
        limits: ProxyLimits | None = None,
        on_refusal: Callable[[str], None] = lambda _why: None,
    ) -> None:
        self._guard = guard
        self._allowed = allowed
        self._on_refusal = on_refusal
        self._limits = limits or ProxyLimits()
        self._connections = 0
        self._credentials = b""
        """What Proxy-Authorization has to be; empty where everybody may ask."""

    @asynccontextmanager
    async def serving(self, path: Path | None = None) -> AsyncIterator[ProxyAddress]:
        """Serves until the block ends, which closes every connection; one block at a time.

        Args:
            path: A Unix socket to make, in a directory that only its owner may enter; else it is
                served on loopback, and asks for a token that nobody else knows.

        Raises:
            ValueError: If others may enter the directory.
            OSError: If it cannot listen there.
        """
        failure: Exception | None = None
        async with await _listener(path) as listener:
            address = _address(listener, path)
            pair = base64.b64encode(f"{USER}:{address.token}".encode())
            self._credentials = b"Basic " + pair if address.token else b""
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(listener.serve, self._serve)
                    try:
                        yield address
                    except Exception as error:  # noqa: BLE001  # a task group would wrap it
                        failure = error
                    group.cancel_scope.cancel()
            finally:
                if path is not None:
                    path.unlink(missing_ok=True)  # noqa: ASYNC240  # one call of the system
        if failure is not None:
            raise failure

    async def _serve(self, client: SocketStream) -> None:
        """Answers one connection; what goes wrong with it concerns no other."""
        self._connections += 1
        try:
            async with await _cancellable(client) as stream:
                await self._answer(stream)
        except (anyio.EndOfStream, *BROKEN):
            pass  # the client has left
        except Exception:
            _logger.exception("A connection of the proxy broke")
        finally:
            self._connections -= 1

    async def _answer(self, client: SocketStream) -> None:
        try:
            request = await self._request(client)
            async with await self._connect(request) as upstream:
                idle = Idle(self._limits.idle_seconds)
                if request.is_tunnel:
                    await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await tunnel(client, upstream, request.rest, idle)
                else:
                    await Exchange(request, client, idle).forward(upstream)
                    await _linger(client)
        except RefusedRequestError as refusal:
            await _refuse(client, refusal)

    async def _request(self, client: SocketStream) -> ProxyRequest:
        if self._connections > self._limits.connections:
            raise RefusedRequestError(503, "Too many connections are open.")
        try:
            with anyio.fail_after(self._limits.head_seconds):
                request = await read_request(client)
        except TimeoutError:
            raise RefusedRequestError(408, "The head took too long.") from None
        given = request.credentials.encode("latin-1")
        if self._credentials and not secrets.compare_digest(given, self._credentials):
            raise RefusedRequestError(407, "The proxy requires its token.")
        return request

    async def _connect(self, request: ProxyRequest) -> SocketStream:
        """A judged connection to what is asked for."""
        where = request.where
        if not self._allowed(request.host, request.port):
            raise self._forbidden(f"{where} is not among the hosts that are allowed.")
        try:
            return await self._guard.connect(
                request.host, request.port, timeout=self._limits.connect_seconds
            )
        except TimeoutError:
            raise RefusedRequestError(504, f"{where} does not answer in time.") from None
        except PermissionDeniedError as error:
            raise self._forbidden(error.message) from None
        except (ToolError, OSError) as error:
            raise RefusedRequestError(502, f"{where} cannot be reached: {error}.") from None

    def _forbidden(self, why: str) -> RefusedRequestError:
        self._on_refusal(why)
        return RefusedRequestError(403, why)


async def _listener(path: Path | None) -> Listener[SocketStream]:
    if path is None:
        (listener,) = (await anyio.create_tcp_listener(local_host=LOOPBACK, local_port=0)).listeners
        return listener
    if stat.S_IMODE(path.parent.stat().st_mode) & 0o077:
        raise ValueError(f"{path.parent} has to be closed to everybody but its owner.")
    return await anyio.create_unix_listener(path, mode=0o600)


def _address(listener: Listener[SocketStream], path: Path | None) -> ProxyAddress:
    if path is not None:
        return ProxyAddress(path=path)
    port: int = listener.extra(SocketAttribute.local_port)  # noqa: S610  # this is no Django
    return ProxyAddress(LOOPBACK, port, secrets.token_urlsafe(24))


async def _cancellable(stream: SocketStream) -> SocketStream:
    """The same connection as a stream that can be given up while something arrives.

    That of AnyIO 4.16 for Unix sockets then has the event loop report an InvalidStateError.
    """
    if not isinstance(stream, UNIXSocketStream):
        return stream
    connection = stream.extra(SocketAttribute.raw_socket).dup()  # noqa: S610  # this is no Django
    await stream.aclose()
    return await SocketStream.from_socket(connection)


async def _refuse(client: SocketStream, refusal: RefusedRequestError) -> None:
    """Says why."""
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
    """Reads on a little: a reset would take the answer away from who is still sending."""
    with anyio.move_on_after(LINGER_SECONDS), suppress(anyio.EndOfStream):
        await client.send_eof()
        left = LINGER_BYTES
        while left > 0:
            left -= len(await client.receive())
