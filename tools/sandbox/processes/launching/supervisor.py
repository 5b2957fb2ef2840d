"""The process above a program: it sees to it that nothing of the program is left.

It makes the process that becomes the program before the program is known, so that a start waits
for no fork. Whatever happens to the launcher, the program's own socket closes, and everything is
ended. Then it may serve again.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from tools.sandbox.processes.kernel import privileges
from tools.sandbox.processes.kernel.landlock import keep_signals_inside
from tools.sandbox.processes.kernel.seccomp import protecting
from tools.sandbox.processes.launching.child import become_program
from tools.sandbox.processes.launching.metadata import MetadataChanges, resolved
from tools.sandbox.processes.launching.watch import Watch
from tools.sandbox.processes.launching.wire import Order, receive_descriptors, send_descriptors

__all__ = ["NEWS", "supervise"]

NEWS = struct.Struct("=i")
"""What the zygote is told: the supervisor's process id. With a program's socket, it has an order;
without one, it is waiting again."""

_LINUX = hasattr(os, "O_PATH")


def supervise(
    orders: socket.socket,
    news: socket.socket,
    filter_program: bytes | None,
    protected: Sequence[int],
    *,
    zygote: int,
    alone: bool,
    again: bool,
) -> None:
    """Starts the program of the next order, and returns when nothing of it is left.

    Args:
        orders: Where the launcher's orders come in.
        news: Where the zygote hears from its supervisors.
        filter_program: The filter of system calls beside Landlock; None where nothing confines
            programs but what they are started with.
        protected: Processes that a filtered program may not signal, beside this one and the zygote.
        zygote: Process id of the zygote, which may have ended by now.
        alone: Whether the kernel can keep its signals, and the program's, from all others.
        again: Whether it serves one order after the other, until the launcher is gone.
    """
    os.setsid()
    if _LINUX:
        privileges.become_subreaper()
    if alone:
        keep_signals_inside(below_others=filter_program is not None)
    if filter_program:
        filter_program = protecting(filter_program, (*protected, zygote, os.getpid()))
    supervisor = _Supervisor(orders, news, filter_program, zygote=zygote, alone=alone)
    while supervisor.serve() and again:
        with suppress(ConnectionError):
            news.send(NEWS.pack(os.getpid()))


class _Supervisor:
    def __init__(
        self,
        orders: socket.socket,
        news: socket.socket,
        filter_program: bytes | None,
        *,
        zygote: int,
        alone: bool,
    ) -> None:
        self._orders = orders
        self._news = news
        self._filter = filter_program
        self._alone = alone
        self._readable: Sequence[bytes] = ()
        """What the last program could read."""
        self._zygote = zygote
        signal.signal(signal.SIGCHLD, self._hear)
        self._wakeup = _wakeup()

    def serve(self) -> bool:
        """Serves one order; False if there will be none."""
        if _LINUX:
            privileges.die_with_parent()
        if self._is_orphan():
            return False
        child, supervisor = socket.socketpair()
        pid = os.fork()
        if not pid:
            child.close()
            become_program(supervisor, self._filter, self._readable)
        supervisor.close()
        _, listener = receive_descriptors(child, 1)  # it is ready
        data, received = receive_descriptors(self._orders, 1)
        if not data:  # the launcher is gone
            return False
        control, order_file, *standard = received
        try:
            send_descriptors(child, b"!", [order_file, *standard])
        except ConnectionError:  # somebody ended what would have become the program
            return False
        order = Order.read(order_file)
        for fd in (order_file, *standard):
            os.close(fd)
        self._readable = order.readable
        # Made before the program runs, which could make its paths lead elsewhere.
        changes = MetadataChanges(listener[0], resolved(order.writable)) if listener else None
        if _LINUX:
            privileges.outlive_parent()
        with suppress(ConnectionError):  # the zygote has ended
            send_descriptors(self._news, NEWS.pack(os.getpid()), [control])
        with suppress(ConnectionError):  # it has failed
            child.send(b"!")  # the program may be executed: from here on somebody ends it
        with socket.socket(fileno=control) as channel:
            watch = Watch(pid, channel, child, self._wakeup, changes, alone=self._alone)
            watch.run(order.scratch)
        return True

    def _hear(self, _signal: int, _frame: object) -> None:
        """A child has ended, or the zygote: what waits for it is nobody's then, and is let go."""
        if self._is_orphan():
            self._orders.close()

    def _is_orphan(self) -> bool:
        return os.getppid() != self._zygote


def _wakeup() -> int:
    """A descriptor that is readable when a child has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable
