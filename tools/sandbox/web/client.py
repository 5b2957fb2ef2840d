"""The HTTP client of all tools: requests are checked, bounded in time and size, and stateless."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from tools.core.errors import (
    DeadlineError,
    InvalidArgumentsError,
    ToolError,
    UnavailableError,
    UpstreamError,
)
from tools.sandbox.secrets.secrets import Secret, Secrets
from tools.sandbox.web.guard import AddressGuard, ForwardProxy
from tools.sandbox.web.response import ACCEPTED, Inflater, WebResponse
from tools.sandbox.web.url import (
    RequestHeaders,
    Url,
    checked_headers,
    for_another_origin,
    without_body,
)

if TYPE_CHECKING:
    import httpcore2

    from tools.sandbox.web.transport import Transport

METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that may be repeated at another origin without side effects (RFC 9110, 9.2.1)."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
USER_AGENT = "toolcrib"
MAX_REASON = 200  # limit on the characters of a server's message that an error repeats


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: Url
    headers: RequestHeaders
    body: bytes | None
    secret: Secret | None


class WebClient:
    """Makes HTTP requests; keeps neither cookies nor connections between them.

    Ignores the environment, including proxy variables and netrc.

    Args:
        proxy: URL of a proxy, including `user:password@` if it needs them; empty for none. Private
            hosts allowed by the guard are contacted directly.
        timeout: Time limit of a request in seconds, from name resolution to the last byte.
        max_bytes: Limit on a body, both compressed and decompressed.
    """

    def __init__(
        self,
        guard: AddressGuard,
        *,
        proxy: str = "",
        timeout: float = 30.0,
        max_bytes: int = 10_000_000,
        secrets: Secrets | None = None,
    ) -> None:
        self._guard = guard
        self._proxy = ForwardProxy.parse(proxy)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._secrets = secrets or Secrets()
        self._transports: dict[tuple[ForwardProxy | None, bool], Transport] = {}
        self._making = anyio.Lock()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        secret: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # the error mentions it
        max_redirects: int = 5,
        follows: Callable[[Url, Url], bool] | None = None,
    ) -> WebResponse:
        """Makes a request, and follows redirects, each checked like the first address.

        Another origin never gets credentials, requests that may have side effects, or requests with
        a secret. Redirects that would need this, or that `follows` refuses, are returned instead.

        `secret` names a secret, sent only to its own hosts and origin. `timeout` includes
        redirects; `follows` decides which redirects, from one URL to another, are followed.
        """
        if method not in METHODS:
            raise InvalidArgumentsError(
                f"The method {method[:50]!r} is not known.",
                next_actions=[f"Use one of {', '.join(sorted(METHODS))}."],
            )
        named = None if secret is None else self._secrets.find(secret)
        request = _Request(method, Url.parse(url), checked_headers(headers), body, named)
        seconds = self._timeout if timeout is None else timeout
        begun = time.monotonic()
        with anyio.move_on_after(seconds):
            response = await self._follow(request, max_redirects, follows)
            return replace(response, elapsed=time.monotonic() - begun)
        raise DeadlineError(
            f"{request.url} was not answered within {seconds:g} seconds.",
            next_actions=["Ask for less, or try again later."],
        )

    async def aclose(self) -> None:
        """Drops the transports; no connection is open between requests."""
        self._transports.clear()

    async def _follow(
        self, request: _Request, max_redirects: int, follows: Callable[[Url, Url], bool] | None
    ) -> WebResponse:
        asked: list[str] = []
        while True:
            async with self._answer(request) as answer:
                target = _redirect(request.url, answer)
                onward = None if target is None else _onward(request, answer.status, target)
                if onward is None or (follows and not follows(request.url, onward.url)):
                    content, is_cut = await self._read(request, answer)
                    return WebResponse(
                        url=str(request.url),
                        status=answer.status,
                        headers=tuple(
                            (name.decode("latin-1"), value.decode("utf-8", "replace"))
                            for name, value in answer.headers
                        ),
                        content=content,
                        truncated=is_cut,
                        redirects=tuple(asked),
                        redirect_to=None if target is None else str(target),
                        elapsed=0.0,
                    )
            asked.append(str(request.url))
            if str(onward.url) in asked and onward.method == request.method:
                raise _endless(asked[0], f"redirects in a circle at {onward.url}")
            if len(asked) > max_redirects:
                raise _endless(asked[0], f"redirects more than {max_redirects} times")
            request = onward

    @asynccontextmanager
    async def _answer(self, request: _Request) -> AsyncIterator[httpcore2.Response]:
        """Yields the start of a response, whose body can be read within the block."""
        url = request.url
        transport = await self._transport(url)
        import httpcore2  # already loaded, in a thread

        try:
            async with transport.send(
                request.method, url, _headers_of(request), request.body, request.secret
            ) as answer:
                yield answer
        except ToolError:
            raise
        except ssl.SSLError as error:
            raise self._failed(url, f"offers no TLS that can be trusted: {error}") from error
        except OSError as error:
            raise self._failed(url, f"cannot be reached: {error}") from error
        except httpcore2.ProxyError as error:
            raise self._failed(url, f"is not reached by the proxy: {error}") from error
        except httpcore2.ProtocolError as error:
            raise self._failed(url, f"does not answer with HTTP: {error}") from error
        except httpcore2.NetworkError as error:
            raise self._failed(url, f"broke off: {error}") from error

    def _failed(self, url: Url, how: str) -> UpstreamError:
        problem = self._secrets.redaction.text(how)[:MAX_REASON]
        return UpstreamError(
            f"{url} {problem}.", next_actions=["Check the URL, or try again later."]
        )

    async def _transport(self, url: Url) -> Transport:
        """Returns the transport for a URL; checks the host first if a proxy connects to it."""
        proxy = None if self._guard.allows(url.host, url.port) else self._proxy
        if proxy is not None:
            with suppress(OSError):  # only the proxy knows the name
                await self._guard.check(url.host, url.port)
        way = proxy, url.scheme == "https"
        async with self._making:
            if way not in self._transports:
                self._transports[way] = await anyio.to_thread.run_sync(self._make, *way)
        return self._transports[way]

    def _make(self, proxy: ForwardProxy | None, tls: bool) -> Transport:
        from tools.sandbox.web.transport import Transport

        try:
            return Transport(self._guard, self._secrets, proxy, tls=tls)
        except OSError as error:
            raise UnavailableError(
                f"The certificates that this machine trusts cannot be loaded: {error}.",
                next_actions=["Check SSL_CERT_FILE and SSL_CERT_DIR, if they are set."],
            ) from error

    async def _read(self, request: _Request, answer: httpcore2.Response) -> tuple[bytes, bool]:
        """Returns the body, decompressed and redacted, and whether it was truncated."""
        encoding = "" if request.method == "HEAD" else _value(answer, b"content-encoding").lower()
        inflater = Inflater(encoding)
        content = bytearray()
        unsecret = self._secrets.redaction.sink(content.extend)
        received = 0
        async with aclosing(answer.aiter_stream()) as parts:
            async for part in parts:
                received += len(part)
                for piece in inflater.feed(part):
                    unsecret.feed(piece)
                    await anyio.lowlevel.checkpoint()
                    if len(content) > self._max_bytes:
                        break
                if max(len(content), received) > self._max_bytes:
                    return bytes(content[: self._max_bytes]), True
        unsecret.flush()
        return bytes(content), inflater.is_cut


def _headers_of(request: _Request) -> list[tuple[str, str]]:
    given = {name.lower() for name, _ in request.headers}
    usual = [("User-Agent", USER_AGENT), ("Accept", "*/*")]
    headers = [("Host", request.url.authority)]
    headers += [(name, value) for name, value in usual if name.lower() not in given]
    if request.body is not None or request.method in {"PATCH", "POST", "PUT"}:
        headers.append(("Content-Length", str(len(request.body or b""))))
    return [*headers, ("Accept-Encoding", ACCEPTED), ("Connection", "close"), *request.headers]


def _redirect(here: Url, answer: httpcore2.Response) -> Url | None:
    location = _value(answer, b"location")
    if answer.status not in REDIRECTS or not location:
        return None
    try:
        return here.join(location)
    except InvalidArgumentsError as error:
        raise UpstreamError(
            f"{here} redirects to an invalid address. {error.message}",
            next_actions=["Ask for another URL."],
        ) from error


def _onward(request: _Request, status: int, target: Url) -> _Request | None:
    """Returns the request that a redirect asks for (RFC 9110, 15.4); None if it would be unsafe.

    Which methods become GET: https://fetch.spec.whatwg.org/#http-redirect-fetch
    """
    onward = replace(request, url=target)
    see_other = status == HTTPStatus.SEE_OTHER and request.method not in {"GET", "HEAD"}
    if see_other or (status in {301, 302} and request.method == "POST"):
        onward = replace(onward, method="GET", body=None, headers=without_body(request.headers))
    if target.origin == request.url.origin:
        return onward
    if onward.method not in SAFE or onward.body is not None or onward.secret is not None:
        return None
    return replace(onward, headers=for_another_origin(onward.headers))


def _value(answer: httpcore2.Response, name: bytes) -> str:
    """Returns the value of a response header; repeated ones are joined by commas."""
    values = [value for key, value in answer.headers if key.lower() == name]
    return b", ".join(values).strip().decode("utf-8", "replace")


def _endless(url: str, how: str) -> UpstreamError:
    return UpstreamError(f"{url} {how}.", next_actions=["Ask for another URL."])
