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
from tools.core.processes.metadata import MetadataChanges, resolved
from tools.core.processes.reaping import end_descendants, end_group, exit_code, reap
from tools.core.processes.scratch import remove_scratch
from tools.core.processes.seccomp import protecting
from tools.core.processes.wire import (
    Order,
    Report,
    ReportKind,
    receive_descriptors,
    send_descriptors,
)

__all__ = ["TAKEN", "supervise"]

TAKEN = struct.Struct("=i")
"""A supervisor's process id, as the zygote is told when it has an order."""

_LINUX = hasattr(os, "O_PATH")


def supervise(
    orders: socket.socket,
    taken: socket.socket,
    scope: int | None,
    filter_program: bytes | None,
    protected: Sequence[int],
) -> NoReturn:
    """Starts the program of the next order and exits when nothing of it is left.

    Args:
        orders: Where the launcher's orders come in.
        taken: Where the zygote learns that there was one.
        scope: The ruleset that keeps signals inside, where the kernel has it.
        filter_program: The filter of system calls beside Landlock; None where there is none.
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
        if filter_program is not None:
            filter_program = protecting(filter_program, (*protected, os.getppid()))
        become_program(orders, status_of_child, filter_program)
    status_of_child.close()
    orders.close()
    data, received = receive_descriptors(status, 1)
    if not data:  # the launcher is gone, or somebody ended what would have become the program
        os._exit(0)
    control = socket.socket(fileno=received[0])
    order = Order.read(received[1])
    os.close(received[1])
    # Before the program runs, which could make its paths lead elsewhere.
    writable = resolved(order.writable)
    if _LINUX:
        privileges.outlive_parent()
    with suppress(ConnectionError):  # it has failed
        status.send(b"!")  # the program may be executed: from here on somebody ends it
    send_descriptors(taken, TAKEN.pack(os.getpid()), received[:1])
    taken.close()
    supervisor = _Supervisor(pid, control, status, wakeup, alone=scope is not None)
    supervisor.run(order.scratch, writable)
    os._exit(0)


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
        self._changes: MetadataChanges | None = None

    def run(self, scratch: bytes, writable: Sequence[bytes]) -> None:
        self._report(self._started(writable))
        self._watch()
        self._end_all()
        if scratch:
            remove_scratch(scratch)
        self._report(Report(ReportKind.ENDED, exit_code(self._ending or 0)))

    def _started(self, writable: Sequence[bytes]) -> Report:
        """How the start went: the program's end of the socket closes when it is executed."""
        report = Report(ReportKind.STARTED, self._pid)
        with self._status as status, suppress(ConnectionError):
            while True:
                message, descriptors = receive_descriptors(status, FAILURE.size)
                if not message:
                    break
                for listener in descriptors:
                    self._changes = MetadataChanges(listener, writable)
                if not descriptors:
                    report = Report(ReportKind.FAILED, *FAILURE.unpack(message))
        return report

    def _watch(self) -> None:
        """Returns when the program has ended, or when the launcher wants it to."""
        poller = select.poll()
        for fd in (self._wakeup, self._control.fileno()):
            poller.register(fd, select.POLLIN)
        changes = self._changes
        if changes is not None:
            poller.register(changes.listener, select.POLLIN)
        while self._ending is None:
            for fd, events in poller.poll():
                if fd == self._wakeup:
                    os.read(fd, 4096)
                    reap(self._note)
                elif changes is None or fd != changes.listener:
                    return
                elif events & select.POLLIN:
                    changes.answer()
                else:  # nobody is left whom the filter holds
                    poller.unregister(fd)

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
