"""Serves the clients that attach to this process, each like one over stdio of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import select
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, NamedTuple

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata

from server.fast_start.attach import WELCOME, Hosting
from server.transport.jsonrpc import PipeWriter, lines_of, messages
from server.transport.signals import stopped_by_signals

_logger = logging.getLogger("toolcrib")


class AttachedClient(NamedTuple):
    """The client of a request, whose conversation ends with its connection."""

    session_id: str


async def serve_attached(
    server: Server[Any],
    running: AbstractAsyncContextManager[Any],
    hosting: Hosting,
    ids: Iterator[str],
    end: Callable[[str], None],
) -> None:
    """Serves clients, whose conversations have these ids, until the last leaves or a signal."""
    serving = anyio.CancelScope()
    clients: set[socket.socket] = set()

    def start(link: socket.socket) -> None:
        clients.add(link)  # at once: it keeps this process running
        group.start_soon(serve, link, next(ids))

    async def serve(link: socket.socket, session_id: str) -> None:
        try:
            with link:
                link.sendall(WELCOME)
                await _serve_client(server, link, AttachedClient(session_id))
        except* OSError:
            pass  # it ended before its last answer
        except* Exception:
            _logger.exception("A client could not be served.")
        finally:
            end(session_id)
            clients.remove(link)
            if not clients:
                serving.cancel()

    stop = partial(asyncio.get_running_loop().call_soon_threadsafe, serving.cancel)
    try:
        async with running:
            with stopped_by_signals(stop), serving:
                async with anyio.create_task_group() as group:
                    start(hosting.first)
                    while True:
                        await _accept(hosting.listener, start)
            hosting.close()
    except Exception:
        _logger.exception("Toolcrib ended.")
        raise


async def _accept(listener: socket.socket, start: Callable[[socket.socket], None]) -> None:
    await anyio.wait_readable(listener)
    try:
        link, _ = listener.accept()
    except OSError as error:  # too many open files
        _logger.warning("No client can attach: %s.", error.strerror)
        await anyio.sleep(1)
        return
    credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    if struct.unpack("=iII", credentials)[1] == os.geteuid():  # process, user, group
        start(link)
    else:
        link.close()


async def _serve_client(server: Server[Any], link: socket.socket, client: AttachedClient) -> None:
    pipe, received = PipeWriter(link.fileno()), lines_of(link.fileno())
    answered = json.loads(await anext(received, b"{}")).get("answered")

    async def lines() -> AsyncIterator[bytes]:
        with suppress(ConnectionError):
            async for line in received:
                yield line
        poll = select.poll()
        poll.register(link, 0)
        if poll.poll(0):  # it was killed, and does not wait for answers
            group.cancel_scope.cancel()

    metadata = ServerMessageMetadata(request_context=client)
    reader, writer = messages(lines(), pipe.write, answered=answered, metadata=metadata)
    async with anyio.create_task_group() as group:
        group.start_soon(pipe.run)
        await server.run(reader, writer, server.create_initialization_options())
        group.cancel_scope.cancel()
