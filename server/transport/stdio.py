"""The stdio transport: one client, whose streams are isolated from the rest of the process."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
from mcp.server.lowlevel import Server

from server.fast_start.reader import EarlyReader, ReadAhead
from server.settings_file import SettingsError
from server.transport.jsonrpc import PipeWriter, lines_of, messages
from server.transport.signals import stopped_by_signals

_logger = logging.getLogger("toolcrib")


async def serve_stdio(
    server: Server[Any],
    running: AbstractAsyncContextManager[Any],
    early_reader: EarlyReader | None = None,
) -> None:
    """Serves one client over stdin and stdout until it closes them or a signal arrives."""
    early = ReadAhead() if early_reader is None else early_reader.end()
    source, sink = _take_streams()
    pipe = PipeWriter(sink)
    lines = lines_of(source, before=early.data)
    reader, writer = messages(lines, pipe.write, answered=early.answered)
    serving = anyio.CancelScope()
    stop = partial(asyncio.get_running_loop().call_soon_threadsafe, serving.cancel)
    async with running:
        try:
            with stopped_by_signals(stop):
                async with anyio.create_task_group() as group:
                    group.start_soon(pipe.run)
                    with serving:
                        await server.run(reader, writer, server.create_initialization_options())
                    group.cancel_scope.cancel()
        except* BrokenPipeError:
            _logger.info("The client closed the connection before its last answer.")


def _take_streams() -> tuple[int, int]:
    """Reserves stdin and stdout for the protocol for the rest of the process's life.

    Descriptor 0 then reads nothing and descriptor 1 is stderr, so that output of tools, libraries
    and child processes, even from a buffer flushed at exit, never reaches the client.

    Returns:
        The descriptors for reading from and writing to the client.
    """
    # Does not test the descriptors: a closed one's number may belong to another file by now.
    if sys.stdin is None or sys.stdout is None:
        raise SettingsError("The stdio transport needs standard input and standard output.")
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, sink
