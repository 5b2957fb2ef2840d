"""A program that runs: what it writes, how it ended, and its end on request."""

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

_PIPE_BYTES = 65_536
"""Bytes that are read at once, as many as a pipe usually holds."""

_READS_AT_ONCE = 16
"""Reads before other tasks get their turn."""

_MOST_REMAINING = 4_194_304
"""Bytes that are still read when a program has ended; no pipe holds more."""

_Sink = Callable[[bytes], None]
_Finish = Callable[[EndReason], Awaitable[tuple[str, ...]]]

_KILLED = 128 + 9
"""Exit code after SIGKILL, which Windows has no name for."""


class SupervisedProcess:
    """A program that runs, with everything that it has started; close it with `aclose`.

    Attributes:
        pid: The program's process id.
        stdout: Descriptor that its standard output is read from, without blocking.
        stderr: The same of its standard error.
        scratch: The directory that is removed in the end, should nobody else do it; empty for none.
        end_reason: Why its supervisor ended it, where it did.
    """

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
        self.scratch = ""
        self.end_reason = EndReason.NONE
        self._control = control
        self._forget = forget
        self._reading = anyio.Lock()
        self._received = b""
        self._exit_code: int | None = None
        self._closed = False

    async def wait(self) -> int:
        """Waits until the program has ended and nothing of it is left, its scratch included.

        Returns:
            The exit code as a shell has it: 128 and the signal's number where a signal ended it.
        """
        async with self._reading:
            while self._exit_code is None:
                report = await self._receive()
                if report is not None and report.kind != ReportKind.ENDED:
                    continue  # the start was cancelled before its report came
                if report is None and self.scratch:
                    # The supervisor was ended from outside, and the zygote ended the rest.
                    await anyio.to_thread.run_sync(remove_scratch, os.fsencode(self.scratch))
                self._exit_code = report.value if report else _KILLED
                self.end_reason = EndReason(report.code if report else EndReason.NONE)
            return self._exit_code

    async def kill(self) -> None:
        """Ends the program and all that it has started; returns when nothing is left."""
        if self._exit_code is None:
            with suppress(OSError):  # it has just ended
                self._control.shutdown(socket.SHUT_WR)
        await self.wait()

    async def aclose(self) -> None:
        """Ends it if it still runs, and closes the descriptors."""
        with anyio.CancelScope(shield=True):
            if not self._closed:
                await self.kill()
            self._close()

    async def started(self) -> Report | None:
        """Returns the supervisor's first report; None when it is gone."""
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
    """A confined program that runs.

    Args:
        process: As the launcher started it.
        level: What confines it.
        notes: What the reader of its results has to know about its start.
        finish: Called once when nothing of it is left, with why its supervisor ended it; returns
            notes on its end.

    Attributes:
        level: What confines it.
        notes: What the reader of its results has to know, a sentence each.
        closed: Paths that rules deny to it, and the rule of each.
    """

    closed: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        process: SupervisedProcess,
        level: Level,
        notes: tuple[str, ...],
        finish: _Finish,
    ) -> None:
        self.level = level
        self.notes = notes
        self._process = process
        # A task of its own: it is finished also where nobody waits for it.
        self._ending = asyncio.create_task(self._watch(finish))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def stdout(self) -> int:
        """Descriptor that its standard output is read from, without blocking."""
        return self._process.stdout

    @property
    def stderr(self) -> int:
        """Descriptor that its standard error is read from, without blocking."""
        return self._process.stderr

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left, and protected files are restored."""
        return self._ending.done()

    async def wait(self) -> int:
        """Waits until nothing of it is left and protected files are restored.

        Returns:
            The exit code as a shell has it.
        """
        return await asyncio.shield(self._ending)

    async def kill(self) -> None:
        """Ends it with everything that it has started; returns when nothing is left."""
        await self._process.kill()
        await self.wait()

    async def aclose(self) -> None:
        """Ends it, and closes its descriptors."""
        try:
            await self.kill()
        finally:
            await self._process.aclose()

    async def _watch(self, finish: _Finish) -> int:
        try:
            return await self._process.wait()
        finally:
            from tools.sandbox.files.text_files import visible

            # They name files and hosts as the program likes.
            self.notes += tuple(map(visible, await finish(self._process.end_reason)))


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended.

    Attributes:
        exit_code: As a shell has it: 128 and the signal's number where a signal ended it.
        timed_out: Whether it was ended at its deadline.
    """

    exit_code: int
    timed_out: bool


async def communicate(
    program: Program | SupervisedProcess, stdout: _Sink, stderr: _Sink, *, seconds: float
) -> Completed:
    """Reads what a program writes until it has ended, or ends it at its deadline.

    However this returns, also by being cancelled, nothing of the program is left.

    Args:
        program: The program; it is closed in the end.
        stdout: Takes its output.
        stderr: Takes its errors.
        seconds: How long it may take.
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
    """Reads what a program writes until it has ended.

    What is in its pipes then is read, and their end is not waited for: others might hold them open.

    Args:
        program: The program.
        stdout: Takes its output.
        stderr: Takes its errors.
    """
    async with anyio.create_task_group() as readers:
        readers.start_soon(_read, program.stdout, stdout)
        readers.start_soon(_read, program.stderr, stderr)
        await program.wait()
        readers.cancel_scope.cancel()
    read_rest(program, stdout, stderr)


def read_rest(program: Program | SupervisedProcess, stdout: _Sink, stderr: _Sink) -> None:
    """Reads what is in a program's pipes, and does not wait for more."""
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
