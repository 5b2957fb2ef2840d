"""A confined process, as the process of a worker."""

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
"""Bytes that are taken of one cell within a second."""
LEAST = 3_200
"""Bytes for which the shortest message counts among those."""

SIGNALLED = 128
"""Exit codes above are signals, as a shell has it."""


class CellProcess:
    """A confined process, which may say anything.

    Args:
        program: The process.
        stream: Our end of the socket that is its stdin.
    """

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
        """Starts it.

        Args:
            processes: What starts it.
            command: What it runs, without the channel.
        """
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
        """Whether nothing of it is left."""
        return self._program.has_ended

    @property
    async def said(self) -> AsyncIterator[bytes]:
        """What it says to the server, which listens more slowly to one that says very much."""
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
        """Returns a message of it.

        Raises:
            ValueError: If a cell may send none that looks like this.
        """
        return checked(message)

    async def send(self, line: bytes) -> None:
        """Sends it a line; nobody takes it where it has ended, or is told that nothing comes."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with self._turn:
                if not self._has_hung_up:
                    await self._stream.send(line)

    async def hang_up(self) -> None:
        """Lets it know that nothing more is sent."""
        self._has_hung_up = True
        with suppress(OSError):
            await self._stream.send_eof()

    async def read_output(self, sink: Sink) -> None:
        """Hands on what it prints."""
        await read_output(self._program, sink, sink)

    def read_printed(self, sink: Sink) -> None:
        """Hands on what it has printed so far."""
        if not self._is_closed:
            read_rest(self._program, sink, sink)

    async def wait(self) -> object:
        """Waits until nothing of it is left."""
        self._exit_code = await self._program.wait()
        return self._exit_code

    async def kill(self) -> None:
        """Ends it with all that it has started."""
        await self._program.kill()

    def ending(self) -> str:
        """How it ended."""
        code = self._exit_code
        is_killed = code > SIGNALLED
        how = signal.Signals(code - SIGNALLED).name if is_killed else f"exit code {code}"
        said = " ".join(["", *(f"({note})" for note in self._program.notes)])
        return f"{'was killed by' if is_killed else 'ended with'} {how}{said.rstrip()}"

    async def aclose(self) -> None:
        """Ends it, and closes what leads to it."""
        self._is_closed = True
        await anyio.aclose_forcefully(self._stream)
        await self._program.aclose()
