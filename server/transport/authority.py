"""Host and Origin headers that name one host: what the SDK's list of allowed ones relies on."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["SoundAuthority"]

_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s\[\]:/?#@]*)(?::\d*)?")
"""Host and port (RFC 3986, section 3.2) without user information."""


class SoundAuthority:
    """ASGI middleware that refuses what only begins like a host and its port.

    The SDK allows `localhost:*` to whatever starts with `localhost:`, `localhost:1@evil.example`
    and `localhost:1.evil.example` too.

    Args:
        app: The application behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on whose Host and Origin are sound, and anything that is no request."""
        answer = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not all(map(_AUTHORITY.fullmatch, headers.getlist("host"))):
                answer = PlainTextResponse("Invalid Host header", status_code=421)
            elif not all(map(_is_origin, headers.getlist("origin"))):
                answer = PlainTextResponse("Invalid Origin header", status_code=403)
        await answer(scope, receive, send)


def _is_origin(value: str) -> bool:
    _scheme, _, authority = value.partition("://")
    return bool(_AUTHORITY.fullmatch(authority))
