"""Cells: confined processes, each of which runs one program or the functions of one text.

A cell sees the interpreter and our packages, and nothing of the user's: no root, no home, no
network, no session. So a spare one belongs to nobody, and waits for whoever comes next.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterable, Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
from anyio.abc import SocketStream, TaskGroup

from tools.core.machine import Machine, first_use
from tools.functions.workers import bootstrap
from tools.functions.workers.messages import Load
from tools.functions.workers.output_log import OutputLog
from tools.functions.workers.worker import Sink, Worker
from tools.sandbox.processes.launching.program import Program, read_output
from tools.sandbox.processes.models import Command, Level
from tools.sandbox.processes.processes import Processes
from tools.sandbox.processes.temporary import PrivateDirectory

__all__ = ["Cells", "cells_of"]

IDLE_SECONDS = 300.0
"""How long a spare process waits for a program."""

_COMMAND = (sys.executable, "-I", "-X", "utf8", bootstrap.__file__, "confined")

SIGNALLED = 128
"""Exit codes above are signals, as a shell has it."""


class Cells:
    """Gives each program and each text of functions a confined process; close with `aclose`.

    Args:
        make: Makes what starts programs that see nothing of the user's, with an empty root.
    """

    def __init__(self, make: Callable[[Path], Processes]) -> None:
        self._root = PrivateDirectory()
        self._processes = make(Path(self._root.path))
        self._group: TaskGroup | None = None
        self._ready = anyio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._spare: asyncio.Task[_Cell] | None = None

    async def level(self) -> Level:
        """Returns what confines them.

        Raises:
            UnavailableError: No confinement works, and one is required.
        """
        return await self._processes.level()

    async def take(self, load: Load, output: Sink | None = None) -> Worker:
        """Returns a worker that has loaded a program or functions; close it with `aclose`.

        What it is made of cannot be trusted: an agent wrote it, and it may say anything. Where
        `loaded.offers` is None, it could not be loaded, for the reasons in `loaded.problems`.

        Args:
            load: What it is to run.
            output: Takes what it prints; by default the log does.

        Raises:
            UnavailableError: It cannot be started, or not confined as required.
            WorkerEndedError: It ended before it had loaded that.
        """
        group = await self._running()
        sink = output or OutputLog(Path(load.path).name).feed
        worker: Worker = await group.start(Worker.run, self._next, load, sink)
        return worker

    async def aclose(self) -> None:
        """Ends all of them."""
        with anyio.CancelScope(shield=True):
            if self._serving is not None:
                self._serving.cancel()
                with suppress(asyncio.CancelledError):
                    await self._serving
            if self._spare is not None:
                await _discard(self._spare)
            await self._processes.aclose()
            await anyio.to_thread.run_sync(self._root.close)

    async def _running(self) -> TaskGroup:
        """The group of their tasks, which outlives the call that needs it first."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        await self._ready.wait()
        return cast("TaskGroup", self._group)

    async def _serve(self) -> None:
        async with anyio.create_task_group() as self._group:
            self._ready.set()
            await anyio.sleep_forever()

    async def _next(self) -> _Cell:
        """The spare process, or a new one; the next spare one is started."""
        spare, self._spare = self._spare, None
        cell = await self._start() if spare is None else await spare
        self._spare = asyncio.create_task(self._start())
        return cell

    async def _start(self) -> _Cell:
        ours, its = socket.socketpair()
        stream = await SocketStream.from_socket(ours)
        try:
            with its:
                program = await self._processes.start(
                    Command(argv=_COMMAND, channel=its.fileno(), writes=False)
                )
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        return _Cell(program, stream)


async def cells_of(machine: Machine) -> Cells:
    """Returns the cells of a machine."""
    return cast("Cells", await first_use(machine, "cells"))


async def _discard(spare: asyncio.Task[_Cell]) -> None:
    cell = await spare
    await cell.aclose()


class _Cell:
    """A confined process, as the process of a worker.

    Args:
        program: The process.
        stream: Our end of the socket that is its stdin.
    """

    def __init__(self, program: Program, stream: SocketStream) -> None:
        self._program = program
        self._stream = stream
        self._turn = anyio.Lock()
        self._exit_code = 0

    @property
    def said(self) -> AsyncIterable[bytes]:
        """What it says to the server."""
        return self._stream

    async def send(self, line: bytes) -> None:
        """Sends it a line; nobody takes it where it has ended."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with self._turn:
                await self._stream.send(line)

    async def hang_up(self) -> None:
        """Lets it know that nothing more is sent."""
        with suppress(OSError):
            await self._stream.send_eof()

    async def read_output(self, sink: Sink) -> None:
        """Hands on what it prints."""
        await read_output(self._program, sink, sink)

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
        if code > SIGNALLED:
            return f"was killed by {signal.Signals(code - SIGNALLED).name}"
        return f"ended with exit code {code}"

    async def aclose(self) -> None:
        """Ends it, and closes what leads to it."""
        await anyio.aclose_forcefully(self._stream)
        await self._program.aclose()
