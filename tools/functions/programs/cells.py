"""Cells: confined processes, each of which runs one program or the functions of one text.

A cell sees the interpreter and our packages, and nothing of the user's: no root, no home, no
network, no session. So a spare one belongs to nobody, and waits for whoever comes next.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
from anyio.abc import SocketStream, TaskGroup, TaskStatus

from tools.core.errors import RateLimitedError, ToolError
from tools.core.machine import Machine, first_use
from tools.functions.programs.claims import checked
from tools.functions.workers import bootstrap
from tools.functions.workers.bounds import OF_CELLS
from tools.functions.workers.messages import Load, Message
from tools.functions.workers.output_log import OutputLog
from tools.functions.workers.worker import Sink, Worker, WorkerEndedError
from tools.sandbox.processes.launching.program import Program, read_output, read_rest
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.processes import Processes
from tools.sandbox.processes.temporary import PrivateDirectory

__all__ = ["Cells", "cells_of"]

_logger = logging.getLogger("toolcrib")

IDLE_SECONDS = 300.0
"""How long a spare process waits for a program."""

MOST_AT_ONCE = 64
"""Those that run: created tools that call each other would else be as many as they like."""

MOST_A_SECOND = 16_000_000
"""Bytes that are taken of one cell within a second."""
LEAST = 3_200
"""Bytes for which the shortest message counts among those."""

_COMMAND = (sys.executable, "-I", "-X", "utf8", bootstrap.__file__, "confined")

SIGNALLED = 128
"""Exit codes above are signals, as a shell has it."""


class Cells:
    """Gives each program and each text of functions a confined process; close with `aclose`.

    Args:
        make: Makes what starts programs that see nothing of the user's, with an empty root.
        memory_bytes: Memory that one may have; 0 sets no limit.
    """

    def __init__(self, make: Callable[[Path], Processes], memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._root = PrivateDirectory()
        self._processes = make(Path(self._root.path))
        self._group: TaskGroup | None = None
        self._ready = anyio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._spare: _Spare | None = None
        self._running_now = 0

    async def is_confined(self) -> bool:
        """Returns whether every one that runs is confined."""
        return await self._processes.is_confined()

    async def is_offline(self) -> bool:
        """Returns whether every one that runs is confined, and reaches no host."""
        return await self._processes.is_offline()

    async def take(self, load: Load, output: Sink | None = None) -> Worker:
        """Returns a worker that has loaded a program or functions; close it with `aclose`.

        What it is made of cannot be trusted: an agent wrote it, and it may say anything. Where
        `loaded.offers` is None, it could not be loaded, for the reasons in `loaded.problems`.

        Args:
            load: What it is to run.
            output: Takes what it prints; by default the log does.

        Raises:
            UnavailableError: It cannot be started, or not confined as required.
            RateLimitedError: As many run as may.
            WorkerEndedError: It ended before it had loaded that.
        """
        group = await self._running()
        sink = output or OutputLog(Path(load.path).name).feed
        limited = replace(load, memory_bytes=self._memory_bytes)
        worker: Worker = await group.start(self._run, limited, sink)
        return worker

    async def aclose(self) -> None:
        """Ends all of them."""
        with anyio.CancelScope(shield=True):
            try:
                if self._serving is not None:
                    self._serving.cancel()
                    with suppress(asyncio.CancelledError):
                        await self._serving
            finally:
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

    async def _run(self, load: Load, sink: Sink, *, task_status: TaskStatus[Worker]) -> None:
        """Runs a worker; what goes wrong with it once it has loaded ends no other."""
        if self._running_now >= MOST_AT_ONCE:
            raise RateLimitedError(
                f"{MOST_AT_ONCE} programs and created tools run already.",
                next_actions=["Call it again when others have ended, and fewer within each other."],
            )
        self._running_now += 1
        try:
            await Worker.run(self._next, load, sink, task_status=task_status)
        except (WorkerEndedError, ToolError):  # it was never there: its caller is told
            raise
        except Exception:
            _logger.exception("A process of %s could not be cared for and is ended", load.path)
        finally:
            self._running_now -= 1

    async def _next(self) -> _Cell:
        """The process that waits, or a new one; another is started to wait then."""
        spare, self._spare = self._spare, None
        try:
            cell = None if spare is None else await spare.taken()
        except BaseException:  # it waits for somebody else
            self._spare = self._spare or spare
            raise
        if cell is None:
            cell = await self._start()
        if self._spare is None:
            self._spare = _Spare(self._start)
            cast("TaskGroup", self._group).start_soon(self._spare.wait)  # before another takes it
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


class _Spare:
    """A process that is started before it is needed, and given up where it is not.

    Args:
        start: Starts it.
    """

    def __init__(self, start: Callable[[], Awaitable[_Cell]]) -> None:
        self._start = start
        self._started = anyio.Event()
        self._taken = anyio.Event()
        self._cell: _Cell | None = None

    async def wait(self) -> None:
        """Starts it, and ends it if it is not taken in time."""
        try:
            self._cell = await self._start()
        except Exception:  # the next program starts one itself, and is told if that fails too
            _logger.warning("No process waits for the next program", exc_info=True)
        finally:
            self._started.set()
        try:
            with anyio.move_on_after(IDLE_SECONDS):
                await self._taken.wait()
        finally:
            cell, self._cell = self._cell, None
            if cell is not None:
                await cell.aclose()

    async def taken(self) -> _Cell | None:
        """Returns it, once, as soon as it is started; None where it could not be, or has ended."""
        await self._started.wait()
        cell, self._cell = self._cell, None
        self._taken.set()
        if cell is not None and cell.has_ended:
            await cell.aclose()
            return None
        return cell


class _Cell:
    """A confined process, as the process of a worker.

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
