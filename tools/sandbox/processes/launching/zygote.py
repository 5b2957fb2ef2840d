"""The process that starts programs: small and single-threaded, so that it can fork.

It keeps a supervisor ready for the next order. If a supervisor is killed, it kills the processes
left behind.
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
from tools.sandbox.processes.kernel import process, seccomp
from tools.sandbox.processes.kernel.landlock import SCOPES_SIGNALS, landlock_abi
from tools.sandbox.processes.launching.messages import receive_descriptors
from tools.sandbox.processes.launching.supervisor import (
    STATUS,
    end_children,
    open_wakeup,
    reap,
    supervise,
)

_REUSED = 2  # number of reused supervisors: one may wait while the other serves

_LINUX = hasattr(os, "O_PATH")


def main(orders: int, *, confines: bool, privileged: bool = False) -> None:
    """Serves a launcher until it closes its socket.

    `confines`: whether Landlock confines the programs.
    `privileged`: whether an executed program may gain privileges (setuid).
    """
    _prepare(privileged=privileged)
    channel = socket.socket(fileno=orders)
    channel.set_inheritable(False)
    filter_program = None
    if confines:
        filter_program = b""  # which the kernel refuses
        with suppress(UnavailableError):
            filter_program = seccomp.filter_program(landlocked=True)
    # Landlock restricts signals only if no privileges can be gained (landlock(7)).
    scoped = not privileged and landlock_abi() >= SCOPES_SIGNALS
    _Zygote(channel, filter_program, scoped=scoped).run()


def _prepare(*, privileged: bool) -> None:
    for number in signal.valid_signals():
        # Programs must not inherit the signals that the server ignores (as under nohup).
        with suppress(OSError, ValueError):  # SIGKILL and SIGSTOP
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a byte in the wakeup descriptor is enough
    if _LINUX:
        if not privileged:
            process.forbid_new_privileges()
        process.hide_memory()
        process.become_subreaper()
    gc.freeze()  # the collector would copy pages that the forks share
    gc.disable()


class _Zygote:
    def __init__(
        self, orders: socket.socket, filter_program: bytes | None, *, scoped: bool
    ) -> None:
        self._orders = orders
        self._statuses, self._supervisors_end = socket.socketpair()
        self._statuses.settimeout(0)
        self._wakeup = open_wakeup()
        self._filter = filter_program
        self._scoped = scoped
        self._reused: set[int] = set()  # supervisors that serve one order after another
        self._waiting: set[int] = set()  # supervisors that wait for an order
        self._running: dict[int, int] = {}
        """The others, with the sockets of their programs, closed when nothing of them is left."""
        self._failed = False

    def run(self) -> None:
        poller = select.poll()
        poller.register(self._orders, 0)  # only to see that it was closed; supervisors read it
        poller.register(self._statuses, select.POLLIN)
        poller.register(self._wakeup, select.POLLIN)
        while not self._failed:
            if not self._waiting:
                self._fork()
            if any(fd == self._orders.fileno() for fd, _ in poller.poll()):
                return
            self._receive_statuses()  # each arrives before its supervisor can end
            with suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
            reap(self._note_ended)

    def _fork(self) -> None:
        zygote, launcher = os.getpid(), os.getppid()
        protected = (launcher, os.getpgid(launcher))
        is_reused = len(self._reused) < _REUSED
        pid = os.fork()
        if pid:
            self._waiting.add(pid)
            if is_reused:
                self._reused.add(pid)
            return
        try:
            self._statuses.close()
            for fd in (self._wakeup, signal.set_wakeup_fd(-1), *self._running.values()):
                os.close(fd)
            supervise(
                self._orders,
                self._supervisors_end,
                self._filter,
                protected,
                zygote=zygote,
                scoped=self._scoped,
                reused=is_reused,
            )
        except Exception:  # noqa: BLE001  # a bug, for the server's log
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        finally:
            os._exit(0)

    def _receive_statuses(self) -> None:
        with suppress(BlockingIOError):
            while True:
                data, sockets = receive_descriptors(self._statuses, STATUS.size)
                (pid,) = STATUS.unpack(data)
                if sockets:
                    self._waiting.discard(pid)
                    self._running[pid] = sockets[0]
                else:
                    self._waiting.add(pid)
                    os.close(self._running.pop(pid))

    def _note_ended(self, pid: int, status: int) -> None:
        if pid in self._waiting:  # the launcher is gone, or a bug would affect others too
            self._failed = True
        self._waiting.discard(pid)
        self._reused.discard(pid)
        control = self._running.pop(pid, None)
        if status and _LINUX:  # it was killed: its remaining processes are now our children
            end_children(lambda *_: None, keep=(*self._running, *self._waiting))
        if control is not None:
            os.close(control)
