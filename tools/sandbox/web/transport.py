"""Requests over checked addresses, one connection each, with a limit on the head of a response."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import anyio
import httpcore2
from anyio.abc import ByteStream
from anyio.streams.tls import TLSAttribute, TLSStream

from tools.sandbox.secrets.secrets import Secret, Secrets
from tools.sandbox.web.guard import AddressGuard, ForwardProxy
from tools.sandbox.web.url import Url

READ_BYTES = 4_096
"""Limit on a read: parsing more would block the event loop for milliseconds in h11."""

MAX_HEAD_BYTES = 16_384  # the limit of Node.js; h11 would take 100 ms to parse 100 kilobytes
MAX_HEAD_LINES = 256
MAX_INTERIM_HEADS = 16  # limit on 1xx responses before the final one
_END_OF_HEAD = re.compile(rb"\n\r?\n")  # as h11 sees it


class Transport:
    """Opens a connection for each request and closes it afterwards, so that each is checked.

    Loading the machine's certificates takes 100 ms, so create it in a thread.

    With a proxy, that is the only host contacted. Without `tls`, no certificates are loaded.
    """

    def __init__(
        self, guard: AddressGuard, secrets: Secrets, proxy: ForwardProxy | None, *, tls: bool
    ) -> None:
        self._guard = proxy.guard if proxy else guard
        self._secrets = secrets
        self._proxy = proxy
        self._tls = _context() if tls else None
        self._proxy_tls = _context() if proxy and proxy.url.scheme == "https" else None

    @asynccontextmanager
    async def send(
        self,
        method: str,
        url: Url,
        headers: list[tuple[str, str]],
        body: bytes | None,
        secret: Secret | None,
    ) -> AsyncIterator[httpcore2.Response]:
        """Yields the start of a response, whose body can be read within the block.

        For a proxy, the URL's host has been checked before, and `headers` are those for the server.
        """
        target = url.target
        if secret is not None:
            is_private = self._proxy is None and self._guard.allows(url.host, url.port)
            secret.check(url, is_private=is_private)
            value = await self._secrets.value(secret)
            target, headers = secret.put_into(target, headers, value)
        if self._proxy and url.scheme == "http":
            headers, target = [*headers, *self._proxy.headers], str(url)
        stream = await self._open(url)
        try:
            answer = await _ask(stream, _request(method, url, target, headers, body))
            if answer.status == 101:  # noqa: PLR2004  # RFC 9110, 15.2.2
                raise httpcore2.RemoteProtocolError("it switches protocols unasked")
            clean = self._secrets.redaction.data
            answer.headers = [(clean(name), clean(given)) for name, given in answer.headers]
            yield answer
        finally:
            await stream.aclose()

    async def _open(self, url: Url) -> _Stream:
        first = self._proxy.url if self._proxy else url
        stream = _Stream(await self._guard.connect(first.host, first.port, timeout=math.inf))
        try:
            if self._proxy_tls:
                stream = await stream.start_tls(self._proxy_tls, first.host)
            if self._tls:
                if self._proxy:
                    await _tunnel(stream, url, self._proxy.headers)
                stream = await stream.start_tls(self._tls, url.host)
        except BaseException:
            await stream.aclose()
            raise
        return stream


class _Connection(httpcore2.AsyncHTTP11Connection):
    """A connection that limits trailers like headers."""

    MAX_INCOMPLETE_EVENT_SIZE = MAX_HEAD_BYTES


def _context() -> ssl.SSLContext:
    context = httpcore2.default_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _request(
    method: str, url: Url, target: str, headers: list[tuple[str, str]], body: bytes | None
) -> httpcore2.Request:
    return httpcore2.Request(
        method,
        httpcore2.URL(scheme=url.scheme, host=url.bracketed, port=url.port, target=target),
        headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in headers],
        content=body,
    )


async def _ask(stream: _Stream, request: httpcore2.Request) -> httpcore2.Response:
    return await _Connection(request.url.origin, stream).handle_async_request(request)


async def _tunnel(stream: _Stream, url: Url, headers: list[tuple[str, str]]) -> None:
    """Makes a proxy connect to the server of a URL (RFC 9110, 9.3.6)."""
    where = url.host_port
    answer = await _ask(stream, _request("CONNECT", url, where, [("Host", where), *headers], None))
    if answer.status != HTTPStatus.OK:
        raise httpcore2.ProxyError(f"it answers {answer.status}")


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection that limits the heads of responses."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._head = _Head()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # the signature of httpcore2
        with anyio.fail_after(timeout):
            await anyio.lowlevel.checkpoint()  # yields between reads of buffered data
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
    ) -> _Stream:
        with anyio.fail_after(timeout):
            try:
                stream = await TLSStream.wrap(
                    self._stream,
                    hostname=server_hostname,
                    ssl_context=ssl_context,
                    standard_compatible=False,
                )
            except (anyio.BrokenResourceError, anyio.EndOfStream) as error:
                message = "the connection broke during the TLS handshake"
                raise httpcore2.ConnectError(message) from error
        return _Stream(stream)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # the signature of httpcore2
        if info != "ssl_object":
            return None
        return self._stream.extra(TLSAttribute.ssl_object, None)  # noqa: S610  # not a query


class _Head:
    """Counts the bytes before a body; h11 alone would accept endless 1xx responses."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._bytes = self._lines = self._interim = 0
        self._is_over = False

    def feed(self, data: bytes) -> None:
        """Counts the next bytes of a response."""
        if self._is_over:
            return
        searched = max(len(self._begun) - 2, 0)
        self._begun += data
        while (end := _END_OF_HEAD.search(self._begun, searched)) is not None:
            head = bytes(self._begun[: end.end()])
            self._bytes += len(head)
            self._lines += head.count(b"\n")
            self._check(0, 0)
            if not re.match(rb"HTTP/1\.\d 1(?!01)", head):
                self._is_over = True
                return
            self._interim += 1
            del self._begun[: end.end()]
            searched = 0
        self._check(len(self._begun), self._begun.count(b"\n"))

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
