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

from tools.core.processes import landlock, privileges
from tools.core.processes.child import become_program
from tools.core.processes.metadata import resolved
from tools.core.processes.seccomp import protecting
from tools.core.processes.watch import Watch
from tools.core.processes.wire import Order, receive_descriptors, send_descriptors

__all__ = ["NEWS", "supervise"]

NEWS = struct.Struct("=i")
"""What the zygote is told: the supervisor's process id. With a program's socket, it has an order;
without one, it is waiting again."""

_LINUX = hasattr(os, "O_PATH")


def supervise(
    orders: socket.socket,
    news: socket.socket,
    scope: int | None,
    filter_program: bytes | None,
    protected: Sequence[int],
    *,
    again: bool,
) -> None:
    """Starts the program of the next order, and returns when nothing of it is left.

    Args:
        orders: Where the launcher's orders come in.
        news: Where the zygote hears from its supervisors.
        scope: The ruleset that keeps signals inside, where the kernel has it.
        filter_program: The filter of system calls beside Landlock; None where there is none.
        protected: Processes that a filtered program may not signal, beside this one.
        again: Whether it serves one order after the other, until the launcher is gone.
    """
    zygote = os.getppid()
    os.setsid()
    if _LINUX:
        privileges.become_subreaper()
    if scope is not None:
        landlock.enter(scope)
    if filter_program is not None:
        filter_program = protecting(filter_program, (*protected, os.getpid()))
    wakeup = _wakeup()
    while _serve(orders, news, wakeup, filter_program, alone=scope is not None) and again:
        with suppress(ConnectionError):
            news.send(NEWS.pack(os.getpid()))
        if os.getppid() != zygote:
            return


def _serve(
    orders: socket.socket,
    news: socket.socket,
    wakeup: int,
    filter_program: bytes | None,
    *,
    alone: bool,
) -> bool:
    """Serves one order; False if there will be none."""
    if _LINUX:
        privileges.die_with_parent()
    status, status_of_child = socket.socketpair()
    pid = os.fork()
    if not pid:
        status.close()
        become_program(orders, status_of_child, filter_program)
    status_of_child.close()
    data, received = receive_descriptors(status, 1)
    if not data:  # the launcher is gone, or somebody ended what would have become the program
        return False
    control, order_file = received
    order = Order.read(order_file)
    os.close(order_file)
    # Before the program runs, which could make its paths lead elsewhere.
    writable = resolved(order.writable)
    if _LINUX:
        privileges.outlive_parent()
    with suppress(ConnectionError):  # it has failed
        status.send(b"!")  # the program may be executed: from here on somebody ends it
    with suppress(ConnectionError):  # the zygote has ended
        send_descriptors(news, NEWS.pack(os.getpid()), [control])
    with socket.socket(fileno=control) as channel:
        Watch(pid, channel, status, wakeup, alone=alone).run(order.scratch, writable)
    return True


def _wakeup() -> int:
    """A descriptor that is readable when a child has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable
