"""Who may speak, and as whom: bearer tokens in front of an HTTP application."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from server.settings.http import HttpSettings
from storage.models import Identity

__all__ = ["BearerTokens", "Caller", "Principal", "callers_of", "principal_of", "token_name_of"]

OWNER = "http.token"
"""Name of the caller with the server's own token; no name of the settings' table has a dot."""


class Caller(AuthenticatedUser):
    """Whoever has one token; the SDK's transports keep others away from what a caller has opened.

    Args:
        name: What tells this caller from all others.
        speaks_for: Whose context its requests are about; None means the server's own.
    """

    def __init__(self, name: str, speaks_for: Identity | None) -> None:
        # The secret itself is not carried along: whatever handles a request could show it.
        super().__init__(AccessToken(token="", client_id=name, scopes=[]))
        self.speaks_for = speaks_for


@dataclass(frozen=True, slots=True)
class Principal:
    """As whom a request is answered.

    Attributes:
        identity: Whose context it is about when it does not say.
        bound: Whether it must not say anything else.
    """

    identity: Identity
    bound: bool


def callers_of(http: HttpSettings) -> list[tuple[SecretStr, Caller]]:
    """Each token of the settings with the caller that it stands for."""
    callers = [
        (each.token, Caller(name, Identity(each.user_id, each.device_id, each.agent_id)))
        for name, each in http.tokens.items()
    ]
    return callers if http.token is None else [(http.token, Caller(OWNER, None)), *callers]


def principal_of(ctx: ServerRequestContext[Any, Any], own: Identity) -> Principal:
    """As whom a request is answered: its token's caller, or the server's own unbound identity.

    Args:
        ctx: The request.
        own: The server's own identity.
    """
    caller = _caller_of(ctx)
    if caller is None:
        return Principal(own, bound=False)
    return Principal(caller.speaks_for or own, bound=True)


def token_name_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """What the settings call the token of a request; empty where it came without one."""
    caller = _caller_of(ctx)
    return "" if caller is None else caller.username


def _caller_of(ctx: ServerRequestContext[Any, Any]) -> Caller | None:
    """Who makes a request; None over stdio, and over HTTP without any token."""
    user = ctx.request.scope.get("user") if isinstance(ctx.request, Request) else None
    return user if isinstance(user, Caller) else None


class BearerTokens:
    """ASGI middleware that answers 401 unless a request carries one of the tokens (RFC 6750).

    What passes has its caller as the scope's user.

    Args:
        app: The application behind it.
        callers: What `Authorization: Bearer …` has to say, and who says it.
    """

    def __init__(self, app: ASGIApp, callers: Sequence[tuple[SecretStr, Caller]]) -> None:
        self._app = app
        self._callers = [(_digest(token.get_secret_value()), caller) for token, caller in callers]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a granted request on, and anything that is no request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        caller = self._caller(headers.getlist("authorization"))
        if caller is not None:
            await self._app({**scope, "user": caller}, receive, send)
            return
        challenge = 'Bearer realm="toolcrib"'
        if "authorization" in headers:
            challenge += ', error="invalid_token"'
        refusal = PlainTextResponse(
            "This server needs its bearer token in the Authorization header.\n",
            status_code=401,
            headers={"WWW-Authenticate": challenge},
        )
        await refusal(scope, receive, send)

    def _caller(self, authorizations: Sequence[str]) -> Caller | None:
        """Whose token it is; every token is compared, and in full, whichever is the right one.

        Of two headers a proxy in front may have judged the other one (RFC 9110, section 5.3).
        """
        authorization = authorizations[0] if len(authorizations) == 1 else ""
        scheme, _, credentials = authorization.partition(" ")
        given = _digest(credentials.strip(" "))
        matches = [caller for token, caller in self._callers if hmac.compare_digest(given, token)]
        return matches[0] if matches and scheme.lower() == "bearer" else None


def _digest(token: str) -> bytes:
    """A token in a length that tells nothing; headers are Latin-1, tokens ASCII."""
    return sha256(token.encode("latin-1")).digest()
