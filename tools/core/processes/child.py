"""A program between fork and exec: it waits for an order, and becomes what the order says."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from tools.core.processes import landlock, privileges, seccomp
from tools.core.processes.limits import apply_limits
from tools.core.processes.wire import Order, Step, receive_descriptors, send_descriptors

__all__ = ["FAILURE", "become_program"]

FAILURE = struct.Struct("=ii")
"""The step that failed and its error number, as the supervisor is told."""


def become_program(
    orders: socket.socket, status: socket.socket, filter_program: bytes | None
) -> NoReturn:
    """Becomes the program of the next order, or exits.

    The supervisor hears on its socket: one byte with the program's own socket and its order; one
    byte with the listener of its filter, if it has one; a `FAILURE`, or nothing more once the
    program runs.

    Args:
        orders: Where the launcher's orders come in.
        status: Where the supervisor listens.
        filter_program: The filter of system calls beside Landlock; None where there is none.
    """
    step = Step.RECEIVE
    try:
        _reset()
        if hasattr(os, "O_PATH"):
            privileges.die_with_parent()
        _rehearse()
        data, received = receive_descriptors(orders, 1)
        if data:
            control, order_file, *standard = received
            send_descriptors(status, b"!", [control, order_file])
            order = Order.read(order_file)
            status = _moved(status, len(standard))
            for step, action in _steps(order, standard, status, filter_program):  # noqa: B007  # a failure names it
                action()
    except OSError as error:
        status.send(FAILURE.pack(step, error.errno or errno.EIO))
    except MemoryError:  # the limit leaves no room to start in
        status.send(FAILURE.pack(step, errno.ENOMEM))
    finally:
        os._exit(1)


def _steps(
    order: Order, standard: Sequence[int], status: socket.socket, filter_program: bytes | None
) -> Sequence[tuple[Step, Callable[[], object]]]:
    """All that is done, in the order in which each still may be done after those before it."""
    steps: list[tuple[Step, Callable[[], object]]] = [
        (Step.DESCRIPTORS, lambda: _place(standard)),
        (Step.DIRECTORY, lambda: os.chdir(order.cwd)),
        (Step.LIMITS, lambda: apply_limits(*order.limits)),
    ]
    if order.landlocked:
        steps += [
            (Step.PRIVILEGES, privileges.drop_capabilities),
            (Step.LANDLOCK, lambda: _restrict(order)),
        ]
    if order.filtered:
        steps.append((Step.FILTER, lambda: _filter(order, status, filter_program)))
    steps.append((Step.EXECUTE, lambda: _execute(order, status)))
    return steps


def _reset() -> None:
    """Gives the program a session of its own, and signals and a umask as after a login."""
    os.setsid()  # also: no controlling terminal
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)


def _moved(channel: socket.socket, below: int) -> socket.socket:
    """The same socket above the descriptors that the program gets."""
    return socket.socket(fileno=fcntl.fcntl(channel.detach(), fcntl.F_DUPFD_CLOEXEC, below))


def _place(standard: Sequence[int]) -> None:
    """Puts standard output, error, input and the files where programs expect them.

    All other descriptors are closed when the program is executed.
    """
    output, error, entry, *files = (
        fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(standard)) for fd in standard
    )
    for target, fd in enumerate((entry, output, error, *files)):
        os.dup2(fd, target)


def _restrict(order: Order) -> None:
    landlock.enter(landlock.path_rules(order.readable, order.writable))


def _rehearse() -> None:
    """Does what a start will do, without effect, while nobody waits.

    Memory that a fork shares is copied when it is first used: most of what a start takes.
    """
    order = Order((b"/",), {}, b"/", True, (b"/",), (b"/",), True, (0, 0, 0, 0), b"")  # noqa: FBT003  # a tuple on the wire
    Order.unpack(order.pack())
    apply_limits(*order.limits)
    if landlock.landlock_abi():
        os.close(landlock.path_rules(order.readable, order.writable))
    with suppress(OSError):  # the kernel takes no empty filter
        seccomp.install(b"", listen=True)


def _filter(order: Order, status: socket.socket, beside_landlock: bytes | None) -> None:
    if not order.landlocked:
        seccomp.install(seccomp.filter_program(landlocked=False), listen=False)
    elif beside_landlock is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    else:
        send_descriptors(status, b"!", [seccomp.install(beside_landlock, listen=True)])


def _execute(order: Order, status: socket.socket) -> None:
    if status.recv(1):  # else the supervisor is gone
        os.execve(order.argv[0], order.argv, order.environment)  # noqa: S606  # that is the point
