"""Starts programs, and ends them with all their descendants.

A launcher talks to a small process, its zygote (`zygote`), which runs from the first start on;
programs under Landlock have a separate one. Each program runs below a supervisor (`supervisor`)
that adopts every descendant, and kills them all when the program ends, on request, or when the
launcher is gone for any reason. On Linux no process can escape. Elsewhere the program's process
group is killed, which a program may leave, and only the command line confines it. Windows is not
supported.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ToolError,
    UnavailableError,
)
from tools.sandbox.processes.launching.messages import (
    REPORT_SIZE,
    EndReason,
    Order,
    Report,
    ReportKind,
    Step,
    memory_files,
    send_descriptors,
)
from tools.sandbox.processes.models import Prepared
from tools.sandbox.processes.scratch import remove_scratch

_MOST_STARTING = 16
"""Limit on simultaneous starts: the kernel limits descriptors in transit (unix(7))."""

_BIG = 1 << 20  # size that takes too long to copy on the event loop
_ATTEMPTS = 3  # limit on zygotes tried for a start, in case something kills them

_KILLED = 128 + 9  # exit code after SIGKILL, for which Windows has no name

_NOT_THERE = {errno.ENOENT, errno.ENOTDIR}
_FORBIDDEN = {errno.EACCES, errno.EPERM}

_ROOT = Path(__file__).parents[4]
# Isolated, without site packages: only the standard library and our own modules are loaded.
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from tools.sandbox.processes.launching.zygote import main; "
    "main(int(sys.argv[2]), confines='confines' in sys.argv, privileged='privileged' in sys.argv)"
)


class Launcher:
    """Starts programs; close it with `aclose`.

    Args:
        privileged: Whether programs may gain privileges by executing others (sudo, snap), as ones
            the user chose may; Landlock then confines none of them.
    """

    def __init__(self, *, privileged: bool = False) -> None:
        self._privileged = privileged
        self._opening = threading.Lock()
        self._zygotes: dict[bool, _Zygote] = {}  # by whether Landlock confines their programs
        self._starting = anyio.Semaphore(_MOST_STARTING)
        self._running: set[SupervisedProcess] = set()

    async def start(self, prepared: Prepared, *, stdin: int | None = None) -> SupervisedProcess:
        """Starts a program; it is running on return, and leaves nothing behind on an error.

        `stdin`: a descriptor for its input instead of the prepared bytes; the caller closes it.
        """
        try:
            order = Order.of(prepared).pack()
            async with self._starting:
                for _ in range(_ATTEMPTS):
                    running = await self._attempt(prepared, order, stdin)
                    if running is not None:
                        return running
            raise UnavailableError(  # noqa: TRY301  # cleaned up like any other error
                "The process that starts programs was ended. Try again."
            )
        except BaseException:
            if prepared.scratch:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(remove_scratch, os.fsencode(prepared.scratch))
            raise

    async def aclose(self) -> None:
        """Ends everything it has started; it may be used again."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for running in tuple(self._running):
                    group.start_soon(running.aclose)
            zygotes, self._zygotes = self._zygotes, {}
            for zygote in zygotes.values():
                await anyio.to_thread.run_sync(zygote.close)

    async def _attempt(
        self, prepared: Prepared, order: bytes, stdin: int | None
    ) -> SupervisedProcess | None:
        """Sends an order; returns None if the zygote ended before a supervisor accepted it."""
        confines = prepared.landlock is not None
        zygote = self._zygotes.get(confines)
        if zygote is None or not zygote.is_alive():
            zygote = await anyio.to_thread.run_sync(self._open, confines)
        async with AsyncExitStack() as failed:
            with ExitStack() as theirs:
                contents = (order, prepared.stdin, *prepared.files)
                if sum(map(len, contents)) > _BIG:
                    files = await anyio.to_thread.run_sync(memory_files, contents, theirs)
                else:
                    files = memory_files(contents, theirs)
                running, (control, *outputs) = self._connect(theirs)
                failed.push_async_callback(running.aclose)
                order_file, *inputs = files
                if stdin is not None:
                    inputs[0] = stdin
                root = () if prepared.root is None else (prepared.root,)
                passed = (*outputs, *inputs, *root, *prepared.folders, *prepared.namespaces)
                await zygote.send_order([control, order_file, *passed])
            report = await running.started()
            if report is None:
                await anyio.to_thread.run_sync(self._discard, confines, zygote)
                return None
            if report.kind == ReportKind.FAILED:
                raise _start_error(prepared, report.value, report.code)
            running.pid, running.scratch = report.value, prepared.scratch
            failed.pop_all()
            return running

    def _discard(self, confines: bool, zygote: _Zygote) -> None:
        """Removes a zygote that has ended; runs in threads."""
        with self._opening:
            if self._zygotes.get(confines) is zygote:
                del self._zygotes[confines]
            zygote.close()

    def _connect(self, theirs: ExitStack) -> tuple[SupervisedProcess, list[int]]:
        """Creates a program's socket and pipes; also returns the descriptors of its ends."""
        with ExitStack() as ours:
            socket_, control = socket.socketpair()
            ours.callback(socket_.close)
            theirs.callback(control.close)
            outputs = [_pipe(ours, theirs) for _ in range(2)]
            running = SupervisedProcess(
                socket_, outputs[0][0], outputs[1][0], self._running.discard
            )
            ours.pop_all()
        self._running.add(running)
        return running, [control.fileno(), *(writable for _, writable in outputs)]

    def _open(self, confines: bool) -> _Zygote:
        with self._opening:
            zygote = self._zygotes.get(confines)
            if zygote is None or not zygote.is_alive():
                if zygote is not None:
                    zygote.close()
                zygote = self._zygotes[confines] = _Zygote(
                    confines=confines, privileged=self._privileged
                )
            return zygote


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


class _Zygote:
    def __init__(self, *, confines: bool, privileged: bool = False) -> None:
        kind = "confines" if confines else "privileged" if privileged else "unprivileged"
        self._orders, theirs = socket.socketpair()
        self._orders.settimeout(0)
        with theirs:
            fd = theirs.fileno()
            try:
                self._process = subprocess.Popen(  # noqa: S603  # our own module
                    [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_ROOT), str(fd), kind],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                    pass_fds=[fd],
                    start_new_session=True,  # the terminal's Ctrl-C is for the server
                )
            except OSError as error:
                self._orders.close()
                raise UnavailableError(f"Programs cannot be started: {error}.") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def send_order(self, descriptors: Sequence[int]) -> None:
        """Sends an order; its descriptors are closed if the zygote ends before accepting it."""
        try:
            try:
                self._send(descriptors)
            except BlockingIOError:  # other orders are waiting
                await anyio.to_thread.run_sync(self._send_when_writable, descriptors)
        except ConnectionError:  # the zygote has ended
            return
        except (OSError, ValueError) as error:
            if self._orders.fileno() < 0:  # closed meanwhile
                return
            raise UnavailableError(f"The program could not be started: {error}.") from error

    def close(self) -> None:
        """Ends it and waits for its exit; runs in threads."""
        self._orders.close()
        self._process.wait()

    def _send(self, descriptors: Sequence[int]) -> None:
        send_descriptors(self._orders, b"!", descriptors)

    def _send_when_writable(self, descriptors: Sequence[int]) -> None:
        while True:
            select.select([], [self._orders], [])
            with suppress(BlockingIOError):
                return self._send(descriptors)


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    readable, writable = os.pipe()
    ours.callback(os.close, readable)
    theirs.callback(os.close, writable)
    return readable, writable


def _start_error(prepared: Prepared, step: int, code: int) -> ToolError:
    """Returns the error of a start that failed at a step with an error number (errno)."""
    reason = os.strerror(code)
    if step == Step.EXECUTE:
        return _execute_error(prepared.argv[0], code)
    if step == Step.DIRECTORY:
        cwd = prepared.environment.get("PWD", prepared.cwd)
        text = f"The program cannot start in {cwd}: {reason}."
        if code in _NOT_THERE:
            return NotFoundError(text)
        return PermissionDeniedError(text) if code in _FORBIDDEN else UnavailableError(text)
    doing = {
        Step.NAMESPACES: "The program could not join its session's network",
        Step.LANDLOCK: "Landlock did not confine the program",
        Step.FILTER: "The program's system calls could not be filtered",
        Step.PRIVILEGES: "The program's privileges could not be dropped",
    }.get(Step(step), "The program could not be started")
    return UnavailableError(f"{doing}: {reason}. It was not run.")


def _execute_error(program: str, code: int) -> ToolError:
    if code in _NOT_THERE:
        return NotFoundError(
            f"The program {program} does not exist, or the interpreter in its first line does not."
        )
    if code in _FORBIDDEN:
        return PermissionDeniedError(f"{program} may not be executed here.")
    if code == errno.E2BIG:
        return InvalidArgumentsError(
            "The arguments and the environment are too long for the system: hand large data over"
            " in a file or on standard input."
        )
    if code == errno.ENOEXEC:
        return InvalidArgumentsError(
            f"{program} is not a program: a script needs a first line that names its interpreter."
        )
    return UnavailableError(f"{program} could not be executed: {os.strerror(code)}.")
