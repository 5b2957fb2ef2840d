"""The HTTP route that does what `toolcrib hook` does, without a process for each event."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from server.clients.locations import AGENT_HEADER
from server.hooks.options import HookOptions
from server.hooks.process import DEADLINE, MOST_BYTES, Hook
from server.settings import Settings
from server.transport.middleware import CLOSE, Caller
from storage.models import Identity

PATH = "/hooks/{client}/{event}"
AT_ONCE = 8
"""Maximum number of events that wait for the record; more are kept for later."""

_logger = logging.getLogger("toolcrib.hooks")


class HookRoute:
    """Answers events of clients; `own` is the identity of callers without one."""

    def __init__(self, current: Callable[[], Settings], own: Identity) -> None:
        settings = current()
        memory = settings.memory
        self._options = HookOptions(
            settings.data_dir, settings.log_file, own, memory.capture, memory.ignore
        )
        self._current = current

    def route(self, security: TransportSecuritySettings) -> Route:
        """Returns the route, which checks headers as the transports do."""
        check, limit = TransportSecurityMiddleware(security), anyio.CapacityLimiter(AT_ONCE)

        async def answer(request: Request) -> Response:
            refusal = await check.validate_request(request, is_post=True)
            return refusal or await self._answer(request, limit)

        return Route(PATH, answer, methods=["POST"])

    async def _answer(self, request: Request, limit: anyio.CapacityLimiter) -> Response:
        caller = request.scope.get("user")
        options = self._options
        if isinstance(caller, Caller):
            # A profile restricts what a token may read and write, and hooks do both without tools.
            profiles = self._current().profiles.values()
            if any(caller.username in each.tokens for each in profiles):
                text = "A token with a profile cannot be used for hooks: use another token.\n"
                return PlainTextResponse(text, 403, CLOSE)
            options = replace(options, identity=caller.speaks_for or options.identity)
        if request.headers.get(AGENT_HEADER):
            options = replace(options, capture=False)
        data = b""
        async for part in request.stream():
            data += part
            if len(data) > MOST_BYTES:
                return PlainTextResponse(f"More than {MOST_BYTES} bytes.\n", 413, CLOSE)
        name = (request.path_params["client"], request.path_params["event"])
        replies: list[Mapping[str, Any]] = []

        def log(problem: str) -> None:
            _logger.warning("%s %s: %s", *name, problem)

        hook = Hook(name, options, replies.append, log, is_remote=True)
        with anyio.move_on_after(DEADLINE):
            await anyio.to_thread.run_sync(hook.prepare, data)
            await anyio.to_thread.run_sync(hook.run, abandon_on_cancel=True, limiter=limit)
        if not hook.is_done:
            await anyio.to_thread.run_sync(hook.give_up)
        return JSONResponse(replies[0] if replies else {})
