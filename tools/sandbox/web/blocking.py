"""The guarded transport for threads that may block: the endpoints that the settings name."""

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
from tools.sandbox.web.addresses import why_not_public
from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.hosts import canonical_host, join_host_port, literal
from tools.sandbox.web.proxy.forward_proxy import ForwardProxy

CONNECT_SECONDS = 10.0
"""Where a request sets no limit."""


def endpoint_client(url: str, *, private: Collection[str] = (), proxy: str = "") -> httpx2.Client:
    """A client for an address of the settings, whose own host and port may therefore be private.

    It follows no redirects and reads nothing of the environment. Making it takes a tenth of a
    second.

    Args:
        url: The address.
        private: Each `host:port` that is asked directly where there is a proxy; so are addresses
            that are not public, and localhost.
        proxy: URL of a proxy that asks instead; empty for none.

    Raises:
        httpx2.InvalidURL: If it is no URL.
    """
    parts = httpx2.URL(url)
    host = canonical_host(f"[{parts.host}]" if ":" in parts.host else parts.host)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    guard = AddressGuard((join_host_port(host, port),))
    is_near = AddressGuard(private).allows(host, port) or _is_local(host)
    transport = _GuardedTransport(guard, None if is_near else ForwardProxy.parse(proxy))
    return httpx2.Client(transport=transport, trust_env=False)


def _is_local(host: str) -> bool:
    """Whether a host is one that a proxy elsewhere would take for its own."""
    address = literal(host)
    return host == "localhost" if address is None else why_not_public(address) is not None


class _GuardedTransport(httpx2.BaseTransport):
    """Requests of httpx2 over the connections of httpcore2, opened by the guard."""

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
        url = request.url
        asked = httpcore2.Request(
            request.method,
            httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.read(),
            extensions=request.extensions,
        )
        with _as_httpx2():
            answer = self._pool.handle_request(asked)
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx2():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _Backend(httpcore2.NetworkBackend):
    """Opens what the guard lets through."""

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
        connection = self._guard.connect_blocking(host, port, timeout=limit)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _Stream(connection)


class _Stream(httpcore2.NetworkStream):
    """A connection that keeps one deadline over a request and its answer, not one a read."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._end: float | None = None
        self._has_read = True

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._has_read = True
        self._limit(timeout)
        return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._has_read:  # another request begins
            self._has_read = False
            self._end = None if timeout is None else time.monotonic() + timeout
        self._limit(timeout)
        try:
            self._socket.sendall(buffer)
        except TimeoutError:
            raise
        except OSError as error:  # the answer may be there already
            raise httpcore2.WriteError(str(error)) from error

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
            return _Stream(ssl_context.wrap_socket(self._socket, server_hostname=server_hostname))
        except BaseException:
            self._socket.close()
            raise

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # as httpcore2 has it
        if info != "is_readable":
            return None
        with selectors.DefaultSelector() as selector:  # as an idle one is once its server left
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(0))

    def _limit(self, timeout: float | None) -> None:
        left = timeout if self._end is None else self._end - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError("the time is over")
        self._socket.settimeout(left)


@contextmanager
def _as_httpx2() -> Iterator[None]:
    """What can go wrong, as whoever uses httpx2 expects it."""
    try:
        yield
    except TimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except OSError as error:
        raise httpx2.ConnectError(str(error)) from error
    except httpcore2.TimeoutException as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except (httpcore2.ProtocolError, httpcore2.NetworkError, httpcore2.ProxyError) as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except ToolError as error:
        raise httpx2.RequestError(error.message) from error
