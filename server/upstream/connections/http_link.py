"""Links over HTTP: Streamable HTTP, and SSE for older servers."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import responses
from typing import Any, Self

import anyio
import httpx2
from mcp.client._transport import ReadStream, TransportStreams  # of public signatures
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.message import SessionMessage

from server.upstream.connections.link import MOST_BYTES, Link

CONNECT_SECONDS = 15.0
WRITE_SECONDS = 60.0

NOT_STREAMABLE = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
)
"""Statuses by which a server of the older transport answers the first request of the newer one
(see "Backwards Compatibility" of the protocol)."""

_KEPT_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
"""Detects a dead peer, as streams may be silent for hours."""


class TokenAuth(httpx2.Auth):
    """Sends the token of a sign-in with requests."""

    problem = ""  # why there is no token now, as the rest of a sentence


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The HTTP address of a server."""

    url: str
    headers: Mapping[str, str]
    tls: ssl.SSLContext
    proxy: str = ""
    auth: TokenAuth | None = None


class HttpLink(Link):
    """A link over HTTP."""

    def __init__(self, endpoint: Endpoint, *, sse: bool = False) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._sse = sse
        self._problem = ""
        self._status = 0

    @property
    def is_not_streamable(self) -> bool:
        """Whether it answered like a server that supports only the older transport."""
        return self._status in NOT_STREAMABLE

    async def explain(self) -> str:
        """Returns why requests failed, as far as HTTP shows."""
        if self.is_forgotten:
            return "has forgotten the session"
        account = self._endpoint.auth
        return (account and account.problem) or self.sign_in_problem or self._problem

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Opens the streams; sends nothing before the first message."""
        url = self._endpoint.url
        async with AsyncExitStack() as stack:
            if self._sse:
                transport = sse_client(url, httpx_client_factory=self.client)
            else:
                client = await stack.enter_async_context(self.client())
                transport = streamable_http_client(
                    url, http_client=client, max_sse_event_size=MOST_BYTES
                )
            read, write = await stack.enter_async_context(transport)
            yield _EndingStream(read, self.ended), write

    def note_answer(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """Records the response to a request."""
        status = response.status_code
        self.sign_in_problem = _sign_in_problem(response, self._endpoint)
        if status < HTTPStatus.BAD_REQUEST:
            if request.method == "POST":
                self._status, self._problem = 0, ""
            return
        if request.method == "POST":
            self._status, self._problem = status, _meaning(status)
        if status == HTTPStatus.NOT_FOUND and MCP_SESSION_ID in request.headers:
            self.is_forgotten = True
            self.ended.set()

    def note_failure(self, error: httpx2.TransportError) -> None:
        """Records a request without response: the server is gone."""
        self._problem = _failure(error, self._endpoint)
        self.ended.set()

    def client(
        self, headers: object = None, timeout: object = None, auth: object = None
    ) -> httpx2.AsyncClient:
        """Builds a client as an `McpHttpClientFactory`, with our own options."""
        del headers, timeout, auth
        endpoint = self._endpoint
        transport = httpx2.AsyncHTTPTransport(
            verify=endpoint.tls,
            trust_env=False,
            proxy=endpoint.proxy or None,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=10),
            socket_options=_KEPT_ALIVE,
        )
        return httpx2.AsyncClient(
            headers={"accept-encoding": "identity", **endpoint.headers},
            transport=_RecordingTransport(transport, self),
            auth=endpoint.auth,
            # Calls have their own deadlines, and a stream may be silent indefinitely.
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None, write=WRITE_SECONDS, pool=None),
            trust_env=False,
        )


class _RecordingTransport(httpx2.AsyncBaseTransport):
    """Records responses, and limits their size."""

    def __init__(self, transport: httpx2.AsyncBaseTransport, link: HttpLink) -> None:
        self._transport = transport
        self._link = link

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._transport.handle_async_request(request)
        except httpx2.TransportError as error:
            self._link.note_failure(error)
            raise
        self._link.note_answer(request, response)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("it compresses its answer unasked", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101  # of an asynchronous transport
        is_stream = "text/event-stream" in response.headers.get("content-type", "").lower()
        most = None if is_stream else MOST_BYTES  # the SDK bounds each event
        response.stream = _LimitedBody(response.stream, self._link, most)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


class _LimitedBody(httpx2.AsyncByteStream):
    """A response body with a size limit."""

    def __init__(self, stream: httpx2.AsyncByteStream, link: HttpLink, most: int | None) -> None:
        self._stream = stream
        self._link = link
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            self._link.received += len(piece)
            if self._most is not None and size > self._most:
                raise httpx2.ReadError(f"its answer has more than {MOST_BYTES >> 20} MB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _EndingStream:
    """A stream of the SDK that signals its end."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], ended: anyio.Event) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:  # noqa: ANN401  # as in the SDK's stream
        """The context of the last message."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Returns the next message."""
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_failure: object) -> None:
        await self.aclose()


def has_token(headers: Iterable[str]) -> bool:
    """Returns whether the settings of a server have a token, instead of a sign-in."""
    return "authorization" in map(str.lower, headers)


def needs_more(response: httpx2.Response) -> bool:
    """Returns whether a token was rejected because it does not have enough scopes."""
    is_refused = response.status_code == HTTPStatus.FORBIDDEN
    return is_refused and extract_field_from_www_auth(response, "error") == "insufficient_scope"


def _sign_in_problem(response: httpx2.Response, endpoint: Endpoint) -> str:
    """Returns why a person must sign in, as the rest of a sentence; empty if they need not."""
    if needs_more(response):
        return "requires sign-in again, for more rights"
    challenge = response.headers.get("www-authenticate", "")
    names_metadata = "resource_metadata" in challenge
    is_asked = endpoint.auth is not None and challenge.lower().startswith("bearer")
    if response.status_code != HTTPStatus.UNAUTHORIZED or not (names_metadata or is_asked):
        return ""
    if endpoint.auth is None:
        return "requires sign-in, not the token in its settings"
    return "requires sign-in"


def _meaning(status: int) -> str:
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return "answered 401: its token is wrong or missing"
        case HTTPStatus.FORBIDDEN:
            return "answered 403: its token does not allow that"
        case HTTPStatus.NOT_FOUND:
            return "answered 404: no MCP server is at that URL"
    return f"answered {status} {responses.get(status, '')}".strip()


def _failure(error: httpx2.TransportError, endpoint: Endpoint) -> str:
    url = httpx2.URL(endpoint.url)
    where = f"{url.host}:{url.port}" if url.port else url.host
    way = " through the proxy in requests.proxy" if endpoint.proxy else ""
    if isinstance(error, httpx2.TimeoutException):
        return f"did not answer at {where}{way}"
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"has no valid certificate at {where}: {cause.verify_message}"
    reason = str(error) or type(error).__name__
    return f"cannot be reached at {where}{way}: {reason}"
