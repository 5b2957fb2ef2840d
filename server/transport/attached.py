"""Serves the clients that attach to this process, each like one over stdio of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import select
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import anyio
from mcp.server.lowlevel import Server

from server.fast_start.attach import WELCOME, Hosting, is_same_user
from server.transport.jsonrpc import PipeWriter, lines_of, messages
from server.transport.signals import stopped_by_signals

HANG_UP_SECONDS = 0.1
"""Interval of looks at whether a client that sends nothing more still reads its answers."""

BUSY_SECONDS = 1.0
"""Pause when no connection can be accepted."""

_STDERR = 2
_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class AttachedClient:
    """The client of a request, whose conversation ends with its connection."""

    session_id: str


class Conversations(Protocol):
    """Begins and ends the conversations of clients."""

    def begin(self) -> str:
        """Returns the id of a new conversation."""

    def end(self, session_id: str) -> None:
        """Ends a conversation."""


async def serve_attached(
    server: Server[Any],
    running: AbstractAsyncContextManager[Any],
    hosting: Hosting,
    conversations: Conversations,
) -> None:
    """Serves all clients that attach, until the last one leaves or a signal arrives."""
    host = _Host(server, hosting, conversations)
    stop = partial(asyncio.get_running_loop().call_soon_threadsafe, host.scope.cancel)
    try:
        async with running:
            _leave_stderr()
            with stopped_by_signals(stop):
                await host.run()
    except Exception:
        _logger.exception("Toolcrib ended.")  # no client has its standard error
        raise


def _leave_stderr() -> None:
    """Gives the standard error of the first client back, which waits for its end."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, _STDERR)
    os.close(nothing)


class _Host:
    def __init__(self, server: Server[Any], hosting: Hosting, conversations: Conversations) -> None:
        self.scope = anyio.CancelScope()
        self._server = server
        self._first, self._listener, self._path = hosting
        self._inode = self._path.stat().st_ino
        self._conversations = conversations
        self._clients = 0

    async def run(self) -> None:
        self._listener.settimeout(0)
        try:
            with self.scope:
                async with anyio.create_task_group() as group:
                    self._welcome(self._first, group.start_soon)
                    while True:
                        await anyio.wait_readable(self._listener)
                        await self._accept(group.start_soon)
        finally:
            with suppress(FileNotFoundError):
                if self._path.stat().st_ino == self._inode:
                    self._path.unlink()
            self._listener.close()  # who connected just now is served alone

    async def _accept(self, start: Callable[..., object]) -> None:
        try:
            link, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # too many open files
            _logger.warning("No client can attach: %s.", error.strerror)
            await anyio.sleep(BUSY_SECONDS)
            return
        if is_same_user(link):
            self._welcome(link, start)
        else:
            link.close()

    def _welcome(self, link: socket.socket, start: Callable[..., object]) -> None:
        self._clients += 1
        start(self._serve, link)

    async def _serve(self, link: socket.socket) -> None:
        session_id = self._conversations.begin()
        try:
            with link, suppress(OSError):
                link.sendall(WELCOME)
                await self._serve_client(link, AttachedClient(session_id))
        except Exception:
            _logger.exception("A client could not be served.")
        finally:
            self._conversations.end(session_id)
            self._clients -= 1
            if not self._clients:
                self.scope.cancel()

    async def _serve_client(self, link: socket.socket, client: AttachedClient) -> None:
        serving = anyio.CancelScope()
        pipe = PipeWriter(link.fileno())

        async def lines() -> AsyncIterator[bytes]:
            with suppress(ConnectionError):
                async for line in received:
                    yield line
            group.start_soon(_hung_up, link, serving)

        received = lines_of(link.fileno())
        hello = json.loads(await anext(received, b"{}"))
        reader, writer = messages(
            lines(), pipe.write, answered=hello.get("answered"), origin=client
        )
        options = self._server.create_initialization_options()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(pipe.run)
                with serving:
                    await self._server.run(reader, writer, options)
                group.cancel_scope.cancel()
        except* OSError:
            pass  # it ended before its last answer


async def _hung_up(link: socket.socket, serving: anyio.CancelScope) -> None:
    """Ends what a client waited for that sends nothing more, once it reads nothing more."""
    poll = select.poll()
    poll.register(link, 0)
    while not poll.poll(0):  # noqa: ASYNC110  # the event loop cannot wait for it
        await anyio.sleep(HANG_UP_SECONDS)
    serving.cancel()
