"""The process that programs are started from: small, with one thread, so that it may fork.

It keeps a supervisor ahead that waits for the next order, and ends what a supervisor has left that
was ended itself.
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
from tools.sandbox.processes.kernel import privileges, seccomp
from tools.sandbox.processes.kernel.landlock import SCOPES_SIGNALS, landlock_abi
from tools.sandbox.processes.launching.reaping import end_children, reap
from tools.sandbox.processes.launching.supervisor import NEWS, supervise
from tools.sandbox.processes.launching.wire import receive_descriptors

__all__ = ["main"]

_LASTING = 2
"""Supervisors that stay: one may wait while the other serves."""

_LINUX = hasattr(os, "O_PATH")


def main(orders: int, *, confines: bool, privileged: bool = False) -> None:
    """Serves a launcher until it closes its socket.

    Args:
        orders: The descriptor of the Unix socket that orders come in by.
        confines: Whether Landlock confines the programs.
        privileged: Whether what they execute may give them privileges.
    """
    _prepare(privileged=privileged)
    os.set_inheritable(orders, False)  # noqa: FBT003  # the standard library has it so
    filter_program = _filter_program() if confines else None
    # Landlock keeps signals inside only where no privileges can be gained (landlock(7)).
    alone = not privileged and landlock_abi() >= SCOPES_SIGNALS
    _Zygote(socket.socket(fileno=orders), filter_program, alone=alone).run()


def _prepare(*, privileged: bool) -> None:
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
        if not privileged:
            privileges.forbid_new_privileges()
        privileges.hide_memory()
        privileges.become_subreaper()
    gc.freeze()  # the collector would copy pages that the forks share
    gc.disable()


def _filter_program() -> bytes:
    """The filter beside Landlock; where there is none an empty one, which the kernel refuses."""
    with suppress(UnavailableError):
        return seccomp.filter_program(landlocked=True)
    return b""


class _Zygote:
    def __init__(self, orders: socket.socket, filter_program: bytes | None, *, alone: bool) -> None:
        self._orders = orders
        self._news, self._news_of_supervisors = socket.socketpair()
        self._news.setblocking(False)  # noqa: FBT003  # the standard library has it so
        self._wakeup, writable = os.pipe()
        for fd in (self._wakeup, writable):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        self._filter = filter_program
        self._alone = alone
        self._lasting: set[int] = set()
        """Supervisors that serve one order after the other."""
        self._waiting: set[int] = set()
        """Supervisors that wait for an order."""
        self._running: dict[int, int] = {}
        """The others, and the sockets of their programs: closed when nothing is left of them."""
        self._failed = False

    def run(self) -> None:
        poller = select.poll()
        poller.register(self._orders, 0)  # only that it was closed; supervisors read it
        poller.register(self._news, select.POLLIN)
        poller.register(self._wakeup, select.POLLIN)
        while not self._failed:
            if not self._waiting:
                self._fork()
            if any(fd == self._orders.fileno() for fd, _ in poller.poll()):
                return
            self._note_news()  # which a supervisor sends before it can end
            with suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
            reap(self._note_ended)

    def _fork(self) -> None:
        zygote, launcher = os.getpid(), os.getppid()
        protected = (launcher, os.getpgid(launcher))
        lasts = len(self._lasting) < _LASTING
        pid = os.fork()
        if pid:
            self._waiting.add(pid)
            if lasts:
                self._lasting.add(pid)
            return
        try:
            self._close()
            news = self._news_of_supervisors
            supervise(
                self._orders,
                news,
                self._filter,
                protected,
                zygote=zygote,
                alone=self._alone,
                again=lasts,
            )
        except Exception:  # noqa: BLE001  # a defect of ours, into the server's log
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        finally:
            os._exit(0)

    def _close(self) -> None:
        """Closes what a supervisor has no use for."""
        self._news.close()
        for fd in (self._wakeup, signal.set_wakeup_fd(-1), *self._running.values()):
            os.close(fd)

    def _note_news(self) -> None:
        with suppress(BlockingIOError):
            while True:
                data, sockets = receive_descriptors(self._news, NEWS.size)
                (pid,) = NEWS.unpack(data)
                if sockets:
                    self._waiting.discard(pid)
                    self._running[pid] = sockets[0]
                else:
                    self._waiting.add(pid)
                    os.close(self._running.pop(pid))

    def _note_ended(self, pid: int, status: int) -> None:
        if pid in self._waiting:  # the launcher is gone, or it has a defect that others have too
            self._failed = True
        self._waiting.discard(pid)
        self._lasting.discard(pid)
        control = self._running.pop(pid, None)
        if status and _LINUX:  # ended by somebody else: what it should have ended is our child now
            end_children(lambda *_: None, keep=(*self._running, *self._waiting))
        if control is not None:
            os.close(control)
