"""Relays the bytes of a tunnel, or one plain request and its response."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import anyio
import h11
from anyio.abc import ByteStream, SocketStream

from tools.sandbox.web.proxy_request import ALERT, MAX_HEAD, ProxyRequest, RefusedRequestError

BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
"""Errors of a stream whose other side is gone."""

_CHUNK = 65_536
_HOP_BY_HOP = {
    *(b"connection", b"proxy-connection", b"keep-alive", b"proxy-authenticate"),
    *(b"proxy-authorization", b"te", b"trailer", b"upgrade"),
}
"""Header fields for the next hop only (RFC 9110, 7.6.1)."""

_NEVER_DROPPED = {b"host", b"content-length", b"transfer-encoding"}
"""Fields that Connection may not name: a body would get another length than it was sent with."""


Judge = Callable[[bytes], bool | None]
"""Returns whether a client's first bytes may be relayed; None if undecided yet."""


class Idle:
    """A scope that ends after a period without traffic."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.scope = anyio.CancelScope()
        self.touch()

    def touch(self) -> None:
        """Records traffic."""
        self.scope.deadline = anyio.current_time() + self._seconds


async def tunnel(
    one: SocketStream, other: SocketStream, early: bytes, idle: Idle, judge: Judge | None = None
) -> None:
    """Relays bytes in both directions until both have ended.

    `early` is what `one` has already sent. `judge` must allow the first bytes from `one` before
    they are relayed.
    """
    with idle.scope:
        async with anyio.create_task_group() as group:
            group.start_soon(_pump, one, other, early, idle, judge)
            await _pump(other, one, b"", idle)


async def _pump(
    source: SocketStream, sink: SocketStream, early: bytes, idle: Idle, judge: Judge | None = None
) -> None:
    try:
        while judge and not (verdict := judge(early)):
            if verdict is False:
                await source.send(ALERT)
                idle.scope.cancel()
                return
            early += await source.receive(_CHUNK)
        if early:
            await sink.send(early)
        while True:
            chunk = await source.receive(_CHUNK)
            idle.touch()
            await sink.send(chunk)
            idle.touch()
    except anyio.EndOfStream:
        with suppress(*BROKEN):
            await sink.send_eof()
    except BROKEN:
        idle.scope.cancel()


class Exchange:
    """One plain request of a client, with its response."""

    def __init__(self, request: ProxyRequest, client: ByteStream, idle: Idle) -> None:
        self._request = request
        self._idle = idle
        self._client = _Speaker(client, h11.SERVER, idle)
        self._client.hear(request.head + request.rest)
        self._can_be_refused = True

    async def forward(self, upstream: ByteStream) -> None:
        """Relays the request and the response.

        `upstream` is a connection to the target, which cannot be reused.
        """
        asked = await self._receive_request()
        target = _Speaker(upstream, h11.CLIENT, self._idle)
        host = (b"host", self._request.authority.encode())
        headers = [host, *_forwarded_headers(asked.headers, without=b"host")]
        problem = ""
        with self._idle.scope:
            async with anyio.create_task_group() as group:
                try:
                    await target.send(
                        h11.Request(method=asked.method, target=self._request.path, headers=headers)
                    )
                    group.start_soon(self._upload, target)
                    await self._download(target, asked.http_version)
                except (h11.ProtocolError, *BROKEN):
                    problem = "The target's answer is not complete HTTP/1.1."
                group.cancel_scope.cancel()
        if self._idle.scope.cancelled_caught:
            problem = "The target does not answer."
        if problem and self._can_be_refused:
            status = 504 if self._idle.scope.cancelled_caught else 502
            raise RefusedRequestError(status, problem)

    async def _receive_request(self) -> h11.Request:
        try:
            asked = await self._client.event()
        except h11.ProtocolError as error:
            raise RefusedRequestError(400, f"The request is not HTTP/1.1: {error}.") from None
        if not isinstance(asked, h11.Request):  # only a request can come first
            raise RefusedRequestError(400, "The request is not HTTP/1.1.")
        return asked

    async def _upload(self, target: _Speaker) -> None:
        """Relays the body; a target that has stopped reading may still answer."""
        try:
            while isinstance(event := await self._client.event(), h11.Data):
                with suppress(*BROKEN):
                    await target.send(event)
            with suppress(*BROKEN):
                await target.send(h11.EndOfMessage())
        except (h11.ProtocolError, *BROKEN):  # caused by the client
            self._can_be_refused = False
            self._idle.scope.cancel()

    async def _download(self, target: _Speaker, version: bytes) -> None:
        while not isinstance(event := await target.event(), h11.EndOfMessage):
            if isinstance(event, h11.InformationalResponse | h11.Response):
                if isinstance(event, h11.Response):
                    self._can_be_refused = False
                elif version != b"1.1":
                    continue
                event = type(event)(
                    status_code=event.status_code,
                    headers=_forwarded_headers(event.headers),
                    reason=event.reason,
                )
            await self._client.send(event)
        await self._client.send(h11.EndOfMessage())


class _Speaker:
    """One side of HTTP/1.1 on a stream, framed by h11."""

    def __init__(self, stream: ByteStream, role: type[h11.SERVER | h11.CLIENT], idle: Idle) -> None:
        self._stream = stream
        self._idle = idle
        self._http = h11.Connection(role, max_incomplete_event_size=MAX_HEAD)

    def hear(self, data: bytes) -> None:
        self._http.receive_data(data)

    async def event(self) -> h11.Event:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            try:
                self.hear(await self._stream.receive(_CHUNK))
            except anyio.EndOfStream:
                self.hear(b"")
            self._idle.touch()
        if isinstance(event, type):  # PAUSED: there was more than one request
            raise h11.RemoteProtocolError("there is more than one message")
        return event

    async def send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            await self._stream.send(data)
            self._idle.touch()


def _forwarded_headers(
    headers: Iterable[tuple[bytes, bytes]], without: bytes = b""
) -> list[tuple[bytes, bytes]]:
    """Returns the end-to-end header fields, with those for the next hop."""
    fields = list(headers)
    named = {
        each.strip()
        for name, value in fields
        if name == b"connection"
        for each in value.lower().split(b",")
    }
    dropped = _HOP_BY_HOP | (named - _NEVER_DROPPED) | {without}
    kept = [(name, value) for name, value in fields if name not in dropped]
    return [*kept, (b"via", b"1.1 toolcrib"), (b"connection", b"close")]
