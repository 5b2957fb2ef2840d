"""Connects a worker to a confined process."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Self

import anyio
from anyio.abc import SocketStream

from tools.functions.programs.claims import checked
from tools.functions.workers.bounds import OF_CELLS
from tools.functions.workers.messages import Message
from tools.functions.workers.worker import Sink
from tools.sandbox.processes.launching.program import Program, read_output, read_rest
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.processes import Processes

MOST_A_SECOND = 16_000_000
"""Maximum bytes read from one cell within a second."""
LEAST = 3_200
"""The minimum size that each message counts for in this limit."""

SIGNALLED = 128
"""Exit codes above this are signals, as in a shell."""


class CellProcess:
    """A confined, untrusted process."""

    bounds = OF_CELLS
    is_confined = True

    def __init__(self, program: Program, stream: SocketStream) -> None:
        self._program = program
        self._stream = stream
        self._turn = anyio.Lock()
        self._exit_code = 0
        self._is_closed = False
        self._has_hung_up = False

    @classmethod
    async def start(cls, processes: Processes, command: Command) -> Self:
        """Starts the process."""
        ours, its = socket.socketpair()
        stream = await SocketStream.from_socket(ours)
        try:
            with its:
                program = await processes.start(replace(command, channel=its.fileno()))
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        return cls(program, stream)

    @property
    def has_ended(self) -> bool:
        """Returns whether all its processes have ended."""
        return self._program.has_ended

    @property
    async def incoming(self) -> AsyncIterator[bytes]:
        """Its messages to the server, read more slowly if it sends too much."""
        left = MOST_A_SECOND
        began = anyio.current_time()
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it was killed
            async for chunk in self._stream:
                yield chunk
                left -= len(chunk) + LEAST * chunk.count(b"\n")
                if left < 0:
                    await anyio.sleep_until(began + 1)
                    left, began = MOST_A_SECOND, anyio.current_time()

    def checked(self, message: Message) -> Message:
        """Returns the message if a cell may send it."""
        return checked(message)

    async def send(self, line: bytes) -> None:
        """Sends the process a line; does nothing if it has ended or was hung up on."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with self._turn:
                if not self._has_hung_up:
                    await self._stream.send(line)

    async def hang_up(self) -> None:
        """Signals that nothing more will be sent."""
        self._has_hung_up = True
        with suppress(OSError):
            await self._stream.send_eof()

    async def read_output(self, sink: Sink) -> None:
        """Passes on everything it prints."""
        await read_output(self._program, sink, sink)

    def read_printed(self, sink: Sink) -> None:
        """Passes on what it has printed so far."""
        if not self._is_closed:
            read_rest(self._program, sink, sink)

    async def wait(self) -> object:
        """Waits until all its processes have ended."""
        self._exit_code = await self._program.wait()
        return self._exit_code

    async def kill(self) -> None:
        """Kills it and everything it started."""
        await self._program.kill()

    def ending(self) -> str:
        """Describes how it ended."""
        code = self._exit_code
        is_killed = code > SIGNALLED
        how = signal.Signals(code - SIGNALLED).name if is_killed else f"exit code {code}"
        said = " ".join(["", *(f"({note})" for note in self._program.notes)])
        return f"{'was killed by' if is_killed else 'ended with'} {how}{said.rstrip()}"

    async def aclose(self) -> None:
        """Kills it and closes the connection."""
        self._is_closed = True
        await anyio.aclose_forcefully(self._stream)
        await self._program.aclose()
