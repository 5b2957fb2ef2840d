"""The process that programs are started from: small, with one thread, so that it may fork.

It keeps one supervisor ahead that waits for the next order, and ends what a supervisor has left
that did not end itself.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from contextlib import suppress

from tools.core.errors import UnavailableError
from tools.core.processes import landlock, privileges, seccomp
from tools.core.processes.reaping import end_children, reap
from tools.core.processes.supervisor import TAKEN, supervise
from tools.core.processes.wire import receive_descriptors

__all__ = ["main"]

_LINUX = hasattr(os, "O_PATH")


def main(orders: int) -> None:
    """Serves a launcher until it closes its socket.

    Args:
        orders: The descriptor of the Unix socket that orders come in by.
    """
    _prepare()
    os.set_inheritable(orders, False)  # noqa: FBT003  # the standard library has it so
    _Zygote(socket.socket(fileno=orders)).run()


def _prepare() -> None:
    """What every process that is forked from here on starts with."""
    for number in signal.valid_signals():
        # What the server ignores (as nohup does) is not for the programs to ignore.
        with suppress(OSError, ValueError):  # SIGKILL and SIGSTOP
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a byte in the wakeup descriptor is enough
    if _LINUX:
        privileges.forbid_new_privileges()
        privileges.hide_memory()
        privileges.become_subreaper()
    gc.freeze()  # the collector would copy pages that the forks share
    gc.disable()


class _Zygote:
    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._taken, self._taking = socket.socketpair()
        self._taken.setblocking(False)  # noqa: FBT003  # the standard library has it so
        self._wakeup, writable = os.pipe()
        for fd in (self._wakeup, writable):
            os.set_blocking(fd, False)  # the standard library has it so
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        scoped = landlock.landlock_abi() >= landlock.SCOPES_SIGNALS
        self._scope = landlock.signal_scope() if scoped else None
        self._filter: bytes | None = None
        with suppress(UnavailableError):  # another system, or an architecture without a table
            self._filter = seccomp.filter_program(landlocked=True)
        self._waiting: int | None = None
        """The supervisor that waits for the next order."""
        self._running: dict[int, int] = {}
        """The others, and the sockets of their programs: closed when nothing is left of them."""

    def run(self) -> None:
        poller = select.poll()
        poller.register(self._orders, 0)  # only that it was closed; supervisors read it
        poller.register(self._taken, select.POLLIN)
        poller.register(self._wakeup, select.POLLIN)
        self._fork()
        while self._waiting is not None and all(
            fd != self._orders.fileno() for fd, _ in poller.poll()
        ):
            # A supervisor tells that it has an order before it can end.
            self._note_taken()
            with suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
            reap(self._note_ended)

    def _fork(self) -> None:
        launcher = os.getppid()
        protected = (launcher, os.getpgid(launcher), os.getpid())
        pid = os.fork()
        if pid:
            self._waiting = pid
            return
        try:
            self._close()
            supervise(self._orders, self._taking, self._scope, self._filter, protected)
        except Exception:  # noqa: BLE001  # a defect of ours, into the server's log
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)

    def _close(self) -> None:
        """Closes what a supervisor has no use for."""
        self._taken.close()
        for fd in (self._wakeup, signal.set_wakeup_fd(-1), *self._running.values()):
            os.close(fd)

    def _note_taken(self) -> None:
        with suppress(BlockingIOError):
            while True:
                data, (control,) = receive_descriptors(self._taken, TAKEN.size)
                (pid,) = TAKEN.unpack(data)
                self._running[pid] = control
                self._fork()

    def _note_ended(self, pid: int, status: int) -> None:
        """A supervisor that waited ends when the launcher is gone, or by a defect: so do we."""
        if pid == self._waiting:
            self._waiting = None
        control = self._running.pop(pid, None)
        if status and _LINUX:  # ended by somebody else: what it should have ended is our child now
            supervisors = [pid for pid in (*self._running, self._waiting) if pid is not None]
            end_children(lambda *_: None, keep=supervisors)
        if control is not None:
            os.close(control)
