"""ASGI middleware of the HTTP transports: bearer tokens, strict headers, and draining."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from storage.models import Identity
from tools.core.toolset import ToolSet

if TYPE_CHECKING:
    from server.settings.http import HttpSettings, TokenSettings

OWNER = "http.token"
"""The name of the caller with the server's own token; names in the settings have no dot."""

CLOSE = {"Connection": "close"}
"""Closes the connection of a rejected request, with anything else sent on it."""

_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s\[\]:/?#@]*)(?::\d*)?")
"""Host and port (RFC 3986, section 3.2) without user information."""


class Caller(AuthenticatedUser):
    """The holder of a token; the SDK's transports protect a caller's sessions from others.

    Args:
        name: A name unique to this caller.
        speaks_for: The identity of its requests; None means the server's own.
        session_id: The conversation of a delegated agent; empty for others.
        tool_set: The tools that it may find and call; None leaves this to the profiles.
    """

    def __init__(
        self,
        name: str,
        speaks_for: Identity | None,
        *,
        session_id: str = "",
        tool_set: ToolSet | None = None,
    ) -> None:
        # The token itself is not stored: any request handler could disclose it.
        super().__init__(AccessToken(token="", client_id=name, scopes=[]))
        self.speaks_for = speaks_for
        self.session_id = session_id
        self.tool_set = tool_set


def callers_of(http: HttpSettings) -> list[tuple[SecretStr, Caller]]:
    """Returns each token in the settings with its caller."""
    callers = [
        (each.token, _caller(name, each)) for name, each in http.tokens.items() if each.token
    ]
    return callers if http.token is None else [(http.token, Caller(OWNER, None)), *callers]


def accounts_of(http: HttpSettings) -> dict[str, Caller]:
    """Returns the callers who have an account at the issuer, by its subject."""
    return {each.subject: _caller(name, each) for name, each in http.tokens.items() if each.subject}


def _caller(name: str, each: TokenSettings) -> Caller:
    return Caller(name, Identity(each.user_id, each.device_id, each.agent_id))


def bearer_token(headers: Headers) -> str:
    """Returns the bearer token of a request; empty without one.

    Rejects two headers: a proxy may have checked the other one (RFC 9110, section 5.3).
    """
    given = headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip(" ") if scheme.lower() == "bearer" else ""


def challenge(headers: Headers, text: str, parameters: Mapping[str, str] = {}) -> Response:
    """Builds a refusal with a challenge, which has these parameters (RFC 6750, section 3)."""
    error = {"error": "invalid_token"} if "authorization" in headers else {}
    named = {"realm": "toolcrib", **error, **parameters}
    status = 403 if named.get("error") == "insufficient_scope" else 401
    value = "Bearer " + ", ".join(f'{name}="{each}"' for name, each in named.items())
    return PlainTextResponse(f"{text}\n", status, {"WWW-Authenticate": value, **CLOSE})


class BearerTokens:
    """ASGI middleware that passes on requests with one of the tokens (RFC 6750).

    Accepted requests have their caller as the scope's user. Others are answered 401, or by
    `otherwise`.
    """

    def __init__(
        self,
        app: ASGIApp,
        callers: Sequence[tuple[SecretStr, Caller]],
        otherwise: ASGIApp | None = None,
    ) -> None:
        self._app = app
        self._callers = [(_digest(token.get_secret_value()), caller) for token, caller in callers]
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on authenticated requests, and anything other than HTTP requests."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if caller := self._caller(bearer_token(headers)):
            await self._app({**scope, "user": caller}, receive, send)
            return
        text = "This server needs its bearer token in the Authorization header."
        await (self._otherwise or challenge(headers, text))(scope, receive, send)

    def _caller(self, token: str) -> Caller | None:
        """Returns the token's caller; compares all tokens in constant time."""
        given = _digest(token)
        matches = [caller for known, caller in self._callers if hmac.compare_digest(given, known)]
        return matches[0] if matches else None


def _digest(token: str) -> bytes:
    """Hashes a token to a fixed length; headers are Latin-1, tokens ASCII."""
    return sha256(token.encode("latin-1")).digest()


class SoundAuthority:
    """ASGI middleware that rejects malformed Host and Origin headers.

    The SDK accepts for `localhost:*` anything that starts with `localhost:`, even
    `localhost:1@evil.example` and `localhost:1.evil.example`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on requests with sound headers, and anything other than HTTP requests."""
        answer = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not all(map(_AUTHORITY.fullmatch, headers.getlist("host"))):
                answer = PlainTextResponse("Invalid Host header", 421, CLOSE)
            elif not all(map(_is_origin, headers.getlist("origin"))):
                answer = PlainTextResponse("Invalid Origin header", 403, CLOSE)
        await answer(scope, receive, send)


def _is_origin(value: str) -> bool:
    _scheme, _, authority = value.partition("://")
    return bool(_AUTHORITY.fullmatch(authority))


class Drain:
    """ASGI middleware that can end all requests in flight, each with a complete response.

    Endless streams thus do not delay the end of the server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._requests: set[anyio.CancelScope] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes requests on, and completes responses that the application left open."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response = _Response(send)
        with anyio.CancelScope() as request:
            self._requests.add(request)
            try:
                await self._app(scope, receive, response.send)
            finally:
                self._requests.discard(request)
        await response.complete()

    def end_all(self) -> None:
        """Cancels all requests in flight."""
        for request in list(self._requests):
            request.cancel()


class _Response:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._open = True

    async def send(self, message: Message) -> None:
        self._started = True
        self._open = message["type"] == "http.response.start" or message.get("more_body", False)
        await self._send(message)

    async def complete(self) -> None:
        if not self._started:
            await self.send({"type": "http.response.start", "status": 503, "headers": []})
        if self._open:
            await self.send({"type": "http.response.body"})
