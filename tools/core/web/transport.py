"""Connections of httpcore2 over judged addresses, with a bound on what is read before a body."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Iterable
from typing import Any

import anyio
import httpcore2
from anyio.abc import ByteStream
from anyio.streams.tls import TLSAttribute, TLSStream

from tools.core.web.forward_proxy import ForwardProxy
from tools.core.web.guard import AddressGuard

__all__ = ["connection_pool"]

READ_BYTES = 8_192
"""What is read at once: h11 takes milliseconds to see through more, and nothing else runs then."""

MAX_HEAD_BYTES = 65_536
MAX_HEAD_LINES = 256
MAX_INTERIM_HEADS = 16
"""Answers 1xx before the answer itself."""

_END_OF_HEAD = re.compile(rb"\n\r?\n")  # as h11 sees it


def connection_pool(
    guard: AddressGuard, proxy: ForwardProxy | None = None, *, tls: bool
) -> httpcore2.AsyncConnectionPool:
    """Opens a connection for each request and closes it after the answer, so that each is judged.

    It takes a tenth of a second to load the machine's certificates; call it in a thread.

    Args:
        guard: Judges where connections lead.
        proxy: Asks instead of us; then connections lead to it alone.
        tls: Whether it is for https; without, there are no certificates to trust.
    """
    options: dict[str, Any] = {
        "ssl_context": (
            httpcore2.default_ssl_context() if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        ),
        "network_backend": _GuardedBackend(proxy.guard if proxy else guard),
        "max_connections": None,
        "max_keepalive_connections": 0,
    }
    if proxy is None:
        return httpcore2.AsyncConnectionPool(**options)
    return httpcore2.AsyncHTTPProxy(**options, **proxy.options())


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens what the guard lets through."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # as httpcore2 calls it
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        del local_address, socket_options  # the pool sets none
        limit = math.inf if timeout is None else timeout
        return _Stream(await self._guard.connect(host, port, timeout=limit))


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection whose answers begin within bounds."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._head = _Head()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # as httpcore2 calls it
        with anyio.fail_after(timeout):
            await anyio.lowlevel.checkpoint()  # what is there already would be read in one go
            try:
                data = await self._stream.receive(min(max_bytes, READ_BYTES))
            except anyio.EndOfStream:
                return b""
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise httpcore2.ReadError("the connection broke") from error
        self._head.feed(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # the same
        self._head = _Head()
        with anyio.fail_after(timeout):
            try:
                await self._stream.send(buffer)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise httpcore2.WriteError("the connection broke") from error

    async def aclose(self) -> None:
        await anyio.aclose_forcefully(self._stream)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # the same
    ) -> httpcore2.AsyncNetworkStream:
        try:
            with anyio.fail_after(timeout):
                stream = await TLSStream.wrap(
                    self._stream,
                    hostname=server_hostname,
                    ssl_context=ssl_context,
                    standard_compatible=False,
                )
        except BaseException as error:
            await self.aclose()
            if isinstance(error, anyio.BrokenResourceError | anyio.EndOfStream):
                message = "the connection broke while TLS was agreed on"
                raise httpcore2.ConnectError(message) from error
            raise
        return _Stream(stream)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # as httpcore2 has it
        if info != "ssl_object":
            return None
        return self._stream.extra(TLSAttribute.ssl_object, None)  # noqa: S610  # it is no query


class _Head:
    """Counts what comes before a body; h11 itself takes 1xx answers without end."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._bytes = self._lines = self._interim = 0
        self._is_over = False

    def feed(self, data: bytes) -> None:
        """Counts the next bytes of an answer.

        Raises:
            httpcore2.RemoteProtocolError: If its headers go beyond the bounds.
        """
        if self._is_over:
            return
        searched = max(len(self._begun) - 2, 0)
        self._begun += data
        while (end := _END_OF_HEAD.search(self._begun, searched)) is not None:
            head = bytes(self._begun[: end.end()])
            self._count(head)
            if not re.match(rb"HTTP/1\.\d 1(?!01)", head):
                self._is_over = True
                return
            self._interim += 1
            del self._begun[: end.end()]
            searched = 0
        self._check(len(self._begun), self._begun.count(b"\n"))

    def _count(self, head: bytes) -> None:
        self._bytes += len(head)
        self._lines += head.count(b"\n")
        self._check(0, 0)

    def _check(self, more_bytes: int, more_lines: int) -> None:
        if (
            self._bytes + more_bytes > MAX_HEAD_BYTES
            or self._lines + more_lines > MAX_HEAD_LINES
            or self._interim > MAX_INTERIM_HEADS
        ):
            raise httpcore2.RemoteProtocolError(
                f"its headers go beyond {MAX_HEAD_BYTES} bytes, {MAX_HEAD_LINES} lines or "
                f"{MAX_INTERIM_HEADS} interim answers"
            )
