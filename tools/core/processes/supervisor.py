"""The process above one program: it sees to it that nothing of the program is left.

It is made before the program is known, with the process that becomes the program, so that a start
waits for no fork. Whatever happens to the launcher, it sees its socket close, and ends everything.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from tools.core.processes import landlock, privileges
from tools.core.processes.child import FAILURE, become_program
from tools.core.processes.reaping import end_descendants, end_group, exit_code, reap
from tools.core.processes.scratch import remove_scratch
from tools.core.processes.wire import Order, Report, ReportKind, receive_descriptors

__all__ = ["TAKEN", "supervise"]

TAKEN = struct.Struct("=i")
"""A supervisor's process id, as the zygote is told when it has an order."""

_LINUX = hasattr(os, "O_PATH")


def supervise(
    orders: socket.socket,
    taken: socket.socket,
    scope: int | None,
    filter_program: bytes,
    protected: Sequence[int],
) -> NoReturn:
    """Starts the program of the next order and exits when nothing of it is left.

    Args:
        orders: Where the launcher's orders come in.
        taken: Where the zygote learns that there was one.
        scope: The ruleset that keeps signals inside, where the kernel has it.
        filter_program: The filter of system calls, for the orders that want one.
        protected: Processes that a filtered program may not signal, beside this one.
    """
    os.setsid()
    if _LINUX:
        privileges.become_subreaper()
        privileges.die_with_parent()
    if scope is not None:
        landlock.enter(scope)
    wakeup = _wakeup()
    status, status_of_child = socket.socketpair()
    pid = os.fork()
    if not pid:
        status.close()
        become_program(orders, status_of_child, filter_program)
    status_of_child.close()
    orders.close()
    data, received = receive_descriptors(status, 1)
    if not data:  # the launcher is gone, or somebody ended what would have become the program
        os._exit(0)
    if _LINUX:
        privileges.outlive_parent()
    status.send(b"!")  # from here on the program may be executed: somebody can end it
    socket.send_fds(taken, [TAKEN.pack(os.getpid())], received[:1])
    taken.close()
    control = socket.socket(fileno=received[0])
    order = Order.read(received[1])
    os.close(received[1])
    os._exit(_Supervisor(pid, control, status, wakeup, alone=scope is not None).run(order))


def _wakeup() -> int:
    """A descriptor that is readable when a child has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


class _Supervisor:
    def __init__(
        self, pid: int, control: socket.socket, status: socket.socket, wakeup: int, *, alone: bool
    ) -> None:
        self._pid = pid
        self._control = control
        self._status = status
        self._wakeup = wakeup
        self._alone = alone
        self._ending: int | None = None

    def run(self, order: Order) -> int:
        self._report(self._started())
        self._watch()
        self._end_all()
        if order.scratch:
            remove_scratch(order.scratch)
        self._report(Report(ReportKind.ENDED, exit_code(self._ending or 0)))
        return 0

    def _started(self) -> Report:
        """How the start went: the program's end of the socket closes when it is executed."""
        failure = self._status.recv(FAILURE.size)
        self._status.close()
        if failure:
            return Report(ReportKind.FAILED, *FAILURE.unpack(failure))
        return Report(ReportKind.STARTED, self._pid)

    def _watch(self) -> None:
        """Returns when the program has ended, or when the launcher wants it to."""
        poller = select.poll()
        for fd in (self._wakeup, self._control.fileno()):
            poller.register(fd, select.POLLIN)
        while True:
            for fd, _ in poller.poll():
                if fd != self._wakeup:
                    return
                os.read(fd, 4096)
                reap(self._note)
                if self._ending is not None:
                    return

    def _note(self, pid: int, status: int) -> None:
        if pid == self._pid:
            self._ending = status

    def _end_all(self) -> None:
        if _LINUX:
            end_descendants(self._note, alone=self._alone)
        else:
            end_group(self._pid)
            while self._ending is None:
                self._note(*os.waitpid(self._pid, 0))

    def _report(self, report: Report) -> None:
        with suppress(OSError):  # the launcher is gone
            self._control.sendall(report.pack())
