"""Receives the redirect of a browser that ends a sign-in, on a port of this machine."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

import anyio
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult

PERSON_SECONDS = 300.0
"""Time for a person to sign in."""

_HEAD_SECONDS = 10.0
_PAGE = "HTTP/1.1 {} -\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{}"


class Redirect:
    """Listens on loopback for one redirect, with the right state only.

    Args:
        show: Shows the address of the page to a person.
    """

    def __init__(self, show: Callable[[str], Awaitable[object]]) -> None:
        self.uri = ""
        self._show = show
        self._state = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] = (
            asyncio.get_running_loop().create_future()
        )

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        """Listens on a port; 0 picks a free one."""
        listener = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=16_384)
        self.uri = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/callback"
        try:
            yield
        finally:
            listener.close()
            self._answer.cancel()

    async def visit(self, page: str) -> None:
        """Shows the page on which a person signs in."""
        self._state = parse_qs(urlsplit(page).query)["state"][0]
        await self._show(page)

    async def answer(self) -> AuthorizationCodeResult:
        """Waits for the redirect; raises OAuthFlowError if the person declined."""
        with anyio.fail_after(PERSON_SECONDS):
            return await self._answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, IndexError, TimeoutError, EOFError):
            with anyio.fail_after(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, text = self._take(head.split(b" ", 2)[1].decode("ascii"))
            writer.write(_PAGE.format(status, len(text), text).encode("ascii"))
            await writer.drain()
        writer.close()

    def _take(self, target: str) -> tuple[int, str]:
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        is_ours = secrets.compare_digest(query.get("state", "").encode(), self._state.encode())
        if urlsplit(target).path != "/callback" or not self._state or not is_ours:
            return 400, "This is not the sign-in that Toolcrib is waiting for.\n"
        if self._answer.done():
            return 400, "This sign-in has already been received.\n"
        if "code" not in query:
            reason = query.get("error", "no code")[:100]
            self._answer.set_exception(OAuthFlowError(f"the sign-in was declined: {reason}"))
            return 200, "You are not signed in. You can close this window.\n"
        self._answer.set_result(
            AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query.get("iss"))
        )
        return 200, "Toolcrib has received your sign-in. You can close this window.\n"
