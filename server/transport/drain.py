"""Ending requests in flight, so that streams which never end by themselves do not delay the end."""

from __future__ import annotations

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Drain"]


class Drain:
    """ASGI middleware that can end every request in flight at once, each with a whole response.

    Args:
        app: The application behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._requests: set[anyio.CancelScope] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes everything on, and completes a response that the application has left open."""
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
        """Cancels every request in flight."""
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
