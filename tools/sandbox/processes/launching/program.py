"""A running program: reads its output, waits for its end, and kills it on request."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.launching.messages import REPORT_SIZE, EndReason, Report, ReportKind
from tools.sandbox.processes.models import Level
from tools.sandbox.processes.scratch import remove_scratch

_PIPE_BYTES = 65_536  # bytes to read at once: the usual capacity of a pipe
_READS_AT_ONCE = 16  # limit on consecutive reads before other tasks run
_MOST_REMAINING = 4_194_304  # limit on the bytes read after a program has ended; no pipe holds more

_Sink = Callable[[bytes], None]
_Finish = Callable[[EndReason], Awaitable[tuple[str, ...]]]

_KILLED = 128 + 9  # exit code after SIGKILL, for which Windows has no name


class SupervisedProcess:
    """A running program with its descendants; close it with `aclose`."""

    def __init__(
        self,
        control: socket.socket,
        stdout: int,
        stderr: int,
        forget: Callable[[SupervisedProcess], object],
    ) -> None:
        control.settimeout(0)
        for fd in (stdout, stderr):
            os.set_blocking(fd, False)
        self.pid = 0
        self.stdout = stdout
        self.stderr = stderr
        # The directory to remove in the end, if its supervisor cannot; empty for none.
        self.scratch = ""
        self.end_reason = EndReason.NONE
        self._control = control
        self._forget = forget
        self._reading = anyio.Lock()
        self._received = b""
        self._exit_code: int | None = None
        self._closed = False

    async def wait(self) -> int:
        """Waits for the end of all its processes; returns the exit code as a shell reports it."""
        async with self._reading:
            while self._exit_code is None:
                report = await self._receive()
                if report is not None and report.kind != ReportKind.ENDED:
                    continue  # the start was cancelled before its report came
                if report is None and self.scratch:
                    # The supervisor was killed from outside, and the zygote killed the rest.
                    await anyio.to_thread.run_sync(remove_scratch, os.fsencode(self.scratch))
                self._exit_code = report.value if report else _KILLED
                self.end_reason = EndReason(report.code if report else EndReason.NONE)
            return self._exit_code

    async def kill(self) -> None:
        """Kills the program with its descendants; returns when none is left."""
        if self._exit_code is None:
            with suppress(OSError):  # it has just ended
                self._control.shutdown(socket.SHUT_WR)
        await self.wait()

    async def aclose(self) -> None:
        """Kills it if it is running, and closes the descriptors."""
        with anyio.CancelScope(shield=True):
            if not self._closed:
                await self.kill()
            self._close()

    async def started(self) -> Report | None:
        """Returns the supervisor's first report; None if the supervisor is gone."""
        async with self._reading:
            if self._exit_code is not None:
                raise UnavailableError("The program was ended while it was started.")
            return await self._receive()

    async def _receive(self) -> Report | None:
        while len(self._received) < REPORT_SIZE:
            await anyio.wait_readable(self._control)
            try:
                data = self._control.recv(REPORT_SIZE - len(self._received))
            except BlockingIOError:
                continue
            except ConnectionError:
                return None
            if not data:
                return None
            self._received += data
        report, self._received = Report.unpack(self._received), b""
        return report

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for end in (self.stdout, self.stderr, self._control):
            anyio.notify_closing(end)
        self._control.close()
        os.close(self.stdout)
        os.close(self.stderr)
        self._forget(self)


class Program:
    """A running, confined program."""

    closed: Mapping[str, str] = MappingProxyType({})  # paths that rules deny to it, with the rules

    def __init__(
        self,
        process: SupervisedProcess,
        level: Level,
        notes: tuple[str, ...],
        finish: _Finish,  # called once after its end, with a reason if its supervisor killed it
    ) -> None:
        self.level = level
        self.notes = notes
        self.pid = process.pid
        self.stdout = process.stdout
        self.stderr = process.stderr
        self._process = process
        # A separate task, so that it finishes even if no caller waits.
        self._ending = asyncio.create_task(self._watch(finish))

    @property
    def has_ended(self) -> bool:
        """True once all its processes have ended and protected files are restored."""
        return self._ending.done()

    async def wait(self) -> int:
        """Waits for the end of all its processes; returns the exit code as a shell reports it."""
        return await asyncio.shield(self._ending)

    async def kill(self) -> None:
        """Kills it with its descendants; returns when none is left."""
        await self._process.kill()
        await self.wait()

    async def aclose(self) -> None:
        """Kills it, and closes its descriptors."""
        try:
            await self.kill()
        finally:
            await self._process.aclose()

    async def _watch(self, finish: _Finish) -> int:
        try:
            return await self._process.wait()
        finally:
            from tools.sandbox.files.text_files import visible

            # The program chooses the names of files and hosts in them.
            self.notes += tuple(map(visible, await finish(self._process.end_reason)))


@dataclass(frozen=True, slots=True)
class Completed:
    """The end of a program."""

    exit_code: int  # as a shell reports it: for a signal, 128 plus its number
    timed_out: bool


async def communicate(
    program: Program | SupervisedProcess, stdout: _Sink, stderr: _Sink, *, seconds: float
) -> Completed:
    """Reads a program's output until it ends, or kills it at its deadline; then closes it.

    Leaves nothing of the program behind, even if cancelled.
    """
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(read_output, program, stdout, stderr)
            with anyio.move_on_after(seconds) as deadline:
                await program.wait()
            if deadline.cancelled_caught:
                await program.kill()
        return Completed(await program.wait(), deadline.cancelled_caught)
    finally:
        with anyio.CancelScope(shield=True):
            await program.aclose()


async def read_output(program: Program | SupervisedProcess, stdout: _Sink, stderr: _Sink) -> None:
    """Reads a program's output until the program ends.

    Then reads what is left in its pipes without waiting for their end: others might hold them open.
    """
    async with anyio.create_task_group() as readers:
        readers.start_soon(_read, program.stdout, stdout)
        readers.start_soon(_read, program.stderr, stderr)
        await program.wait()
        readers.cancel_scope.cancel()
    read_rest(program, stdout, stderr)


def read_rest(program: Program | SupervisedProcess, stdout: _Sink, stderr: _Sink) -> None:
    """Reads what is in a program's pipes, without waiting for more."""
    _read_rest(program.stdout, stdout)
    _read_rest(program.stderr, stderr)


async def _read(descriptor: int, sink: _Sink) -> None:
    while True:
        await anyio.wait_readable(descriptor)
        for _ in range(_READS_AT_ONCE):
            try:
                data = os.read(descriptor, _PIPE_BYTES)
            except BlockingIOError:
                break
            if not data:
                return
            sink(data)


def _read_rest(descriptor: int, sink: _Sink) -> None:
    left = _MOST_REMAINING
    while left > 0:
        try:
            data = os.read(descriptor, _PIPE_BYTES)
        except BlockingIOError:
            return
        if not data:
            return
        sink(data)
        left -= len(data)
