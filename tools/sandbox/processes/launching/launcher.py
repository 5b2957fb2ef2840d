"""Starts programs, and ends them with everything that they have started.

A launcher talks to a small process, its zygote (`zygote`), which is there from the first start on;
programs that Landlock confines have another one than those that are free. Above each program is a
supervisor (`supervisor`) that adopts every descendant and ends them all when the program ends, when
it is told to, or when the launcher is no more, however that ended. On Linux no process can leave;
elsewhere the program's process group is ended, which a program may leave, and nothing confines it
but what it is started with. Windows is not supported.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import AsyncExitStack, ExitStack

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.failures import start_error
from tools.sandbox.processes.launching.orders import kept_in_memory, packed_order
from tools.sandbox.processes.launching.running import Running
from tools.sandbox.processes.launching.wire import ReportKind
from tools.sandbox.processes.launching.zygote_process import ZygoteProcess
from tools.sandbox.processes.models import Prepared
from tools.sandbox.processes.scratch import remove_scratch

__all__ = ["Launcher"]

_MOST_STARTING = 16
"""Starts at one time: the kernel counts descriptors on their way (unix(7), ETOOMANYREFS)."""

_BIG = 1 << 20
"""Bytes that take longer to copy than the event loop may be kept."""

_ATTEMPTS = 3
"""Zygotes that are tried for one start, should something end them."""


class Launcher:
    """Starts programs; close it with `aclose`.

    Args:
        privileged: Whether a program may gain privileges by what it executes, as one that the user
            chose may (sudo, snap); Landlock confines none of these.
    """

    def __init__(self, *, privileged: bool = False) -> None:
        self._privileged = privileged
        self._opening = threading.Lock()
        self._zygotes: dict[bool, ZygoteProcess] = {}
        """By whether Landlock confines what they start."""
        self._starting = anyio.Semaphore(_MOST_STARTING)
        self._running: set[Running] = set()

    async def start(self, prepared: Prepared, *, stdin: int | None = None) -> Running:
        """Starts a program; it runs when this returns, else nothing is left of it.

        Args:
            prepared: What is started.
            stdin: A descriptor that is its standard input instead of what is prepared; the caller
                closes it.

        Raises:
            NotFoundError: There is no such program, or no such directory.
            PermissionDeniedError: The program may not be executed, or the directory not entered.
            InvalidArgumentsError: The command is too long, no program, or holds a NUL character.
            UnavailableError: Programs cannot be started, or not confined as they have to be.
        """
        try:
            order = packed_order(prepared)
            async with self._starting:
                for _ in range(_ATTEMPTS):
                    running = await self._attempt(prepared, order, stdin)
                    if running is not None:
                        return running
            raise UnavailableError(  # noqa: TRY301  # cleaned up after as all others
                "The process that starts programs was ended. Try again."
            )
        except BaseException:
            if prepared.scratch:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(remove_scratch, os.fsencode(prepared.scratch))
            raise

    async def aclose(self) -> None:
        """Ends everything that it has started; it may be used again."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for running in tuple(self._running):
                    group.start_soon(running.aclose)
            zygotes, self._zygotes = self._zygotes, {}
            for zygote in zygotes.values():
                await anyio.to_thread.run_sync(zygote.close)

    async def _attempt(self, prepared: Prepared, order: bytes, stdin: int | None) -> Running | None:
        """Hands an order over; None where nobody took it, because the zygote has ended."""
        confines = prepared.landlock is not None
        zygote = self._zygotes.get(confines)
        if zygote is None or not zygote.is_alive():
            zygote = await anyio.to_thread.run_sync(self._open, confines)
        async with AsyncExitStack() as failed:
            with ExitStack() as theirs:
                contents = (order, prepared.stdin, *prepared.files)
                if sum(map(len, contents)) > _BIG:
                    files = await anyio.to_thread.run_sync(kept_in_memory, contents, theirs)
                else:
                    files = kept_in_memory(contents, theirs)
                running, (control, *outputs) = self._connect(theirs)
                failed.push_async_callback(running.aclose)
                order_file, *inputs = files
                if stdin is not None:
                    inputs[0] = stdin
                await zygote.hand_over([control, order_file, *outputs, *inputs])
            report = await running.started()
            if report is None:
                await anyio.to_thread.run_sync(self._discard, confines, zygote)
                return None
            if report.kind == ReportKind.FAILED:
                raise start_error(prepared, report.value, report.code)
            running.pid, running.scratch = report.value, prepared.scratch
            failed.pop_all()
            return running

    def _discard(self, confines: bool, zygote: ZygoteProcess) -> None:
        """Has the next start begin with another zygote; called in threads."""
        with self._opening:
            if self._zygotes.get(confines) is zygote:
                del self._zygotes[confines]
            zygote.close()

    def _connect(self, theirs: ExitStack) -> tuple[Running, list[int]]:
        """A program's socket, output and error: the server's ends, and those of the program."""
        with ExitStack() as ours:
            socket_, control = socket.socketpair()
            ours.callback(socket_.close)
            theirs.callback(control.close)
            outputs = [_pipe(ours, theirs) for _ in range(2)]
            running = Running(socket_, outputs[0][0], outputs[1][0], self._running.discard)
            ours.pop_all()
        self._running.add(running)
        return running, [control.fileno(), *(writable for _, writable in outputs)]

    def _open(self, confines: bool) -> ZygoteProcess:
        """The zygote that runs; called in threads."""
        with self._opening:
            zygote = self._zygotes.get(confines)
            if zygote is None or not zygote.is_alive():
                if zygote is not None:
                    zygote.close()
                zygote = self._zygotes[confines] = ZygoteProcess(
                    confines=confines, privileged=self._privileged
                )
            return zygote


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    readable, writable = os.pipe()
    ours.callback(os.close, readable)
    theirs.callback(os.close, writable)
    return readable, writable
