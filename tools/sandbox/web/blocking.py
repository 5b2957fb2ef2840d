"""The guarded transport for threads that may block, used for endpoints in the settings."""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

from tools.core.errors import ToolError
from tools.sandbox.web.guard import AddressGuard, ForwardProxy
from tools.sandbox.web.hosts import canonical_host, join_host_port, literal, why_not_public

CONNECT_SECONDS = 10.0  # timeout for requests without one


def endpoint_client(url: str, *, private: Collection[str] = (), proxy: str = "") -> httpx2.Client:
    """Creates a client for an address in the settings, whose host and port may be private.

    It follows no redirects and ignores the environment. Creating it takes 100 ms.

    Each `host:port` in `private` is contacted directly even with a proxy, as localhost and
    nonpublic addresses are. Raises httpx2.InvalidURL.
    """
    parts = httpx2.URL(url)
    host = canonical_host(f"[{parts.host}]" if ":" in parts.host else parts.host)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    guard = AddressGuard((join_host_port(host, port),))
    address = literal(host)
    # A remote proxy would take a local host for another machine.
    is_local = host == "localhost" if address is None else why_not_public(address) is not None
    is_near = is_local or AddressGuard(private).allows(host, port)
    transport = _GuardedTransport(guard, None if is_near else ForwardProxy.parse(proxy))
    return httpx2.Client(transport=transport, trust_env=False)


class _GuardedTransport(httpx2.HTTPTransport):
    """The transport of httpx2, whose connections are opened by the guard."""

    def __init__(self, guard: AddressGuard, proxy: ForwardProxy | None) -> None:
        options: dict[str, Any] = {
            "ssl_context": httpcore2.default_ssl_context(),
            "network_backend": _Backend(proxy.guard if proxy else guard),
        }
        self._pool = (
            httpcore2.HTTPProxy(**options, **proxy.options())
            if proxy
            else httpcore2.ConnectionPool(**options)
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return super().handle_request(request)
        except ToolError as error:  # of the guard
            raise httpx2.RequestError(error.message) from error


class _Backend(httpcore2.NetworkBackend):
    """Opens connections that the guard allows."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        del local_address, socket_options  # the pool sets none
        limit = CONNECT_SECONDS if timeout is None else timeout
        with _as_httpcore2(httpcore2.ConnectError):
            connection = self._guard.connect_blocking(host, port, timeout=limit)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _Stream(connection)


class _Stream(httpcore2.NetworkStream):
    """A connection with one deadline for a request and its response, instead of one per read."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._end: float | None = None
        self._has_read = True

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._has_read = True
        with _as_httpcore2(httpcore2.ReadError):
            self._limit(timeout)
            return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._has_read:  # the next request begins
            self._has_read = False
            self._end = None if timeout is None else time.monotonic() + timeout
        with _as_httpcore2(httpcore2.WriteError):  # the response may have arrived already
            self._limit(timeout)
            self._socket.sendall(buffer)

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        self._socket.settimeout(timeout)
        try:
            with _as_httpcore2(httpcore2.ConnectError):
                wrapped = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
        except BaseException:
            self._socket.close()
            raise
        return _Stream(wrapped)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # the signature of httpcore2
        if info != "is_readable":
            return None
        with selectors.DefaultSelector() as selector:  # readable if the server has closed it
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(0))

    def _limit(self, timeout: float | None) -> None:
        left = timeout if self._end is None else self._end - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError("the time is over")
        self._socket.settimeout(left)


@contextmanager
def _as_httpcore2(failure: type[httpcore2.NetworkError]) -> Iterator[None]:
    """Converts errors of sockets, which httpx2 would not expect."""
    try:
        yield
    except TimeoutError as error:
        raise httpcore2.ReadTimeout(str(error)) from error
    except OSError as error:
        raise failure(str(error)) from error
