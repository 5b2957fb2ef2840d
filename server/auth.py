"""Who may speak: a bearer token in front of an HTTP application."""

from __future__ import annotations

import hmac

from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["BearerToken"]


class BearerToken:
    """ASGI middleware that answers 401 unless a request carries the token (RFC 6750).

    Args:
        app: The application behind it.
        token: What `Authorization: Bearer …` has to say.
    """

    def __init__(self, app: ASGIApp, token: SecretStr) -> None:
        self._app = app
        self._token = token.get_secret_value().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a granted request on, and anything that is no request."""
        if scope["type"] != "http" or self._is_granted(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        challenge = 'Bearer realm="toolcrib"'
        if "authorization" in Headers(scope=scope):
            challenge += ', error="invalid_token"'
        refusal = PlainTextResponse(
            "This server needs its bearer token in the Authorization header.\n",
            status_code=401,
            headers={"WWW-Authenticate": challenge},
        )
        await refusal(scope, receive, send)

    def _is_granted(self, headers: Headers) -> bool:
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        # In bytes: compare_digest takes no text beyond ASCII, and a header may hold some.
        given = credentials.strip(" ").encode("latin-1")
        return scheme.lower() == "bearer" and hmac.compare_digest(given, self._token)
