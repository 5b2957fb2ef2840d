"""A program between fork and exec: it waits for its order, and becomes what the order says."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Callable, Sequence
from typing import NoReturn

from tools.sandbox.processes.confinement.confining import Confining
from tools.sandbox.processes.kernel import privileges
from tools.sandbox.processes.kernel.limits import apply_limits
from tools.sandbox.processes.launching.wire import (
    Order,
    Step,
    receive_descriptors,
    send_descriptors,
)

__all__ = ["FAILURE", "become_program"]

FAILURE = struct.Struct("=ii")
"""The step that failed and its error number, as the supervisor is told."""


def become_program(
    supervisor: socket.socket, filter_program: bytes | None, readable: Sequence[bytes]
) -> NoReturn:
    """Becomes the program of an order, or exits.

    The supervisor hears one byte when it can send the order, with the listener of the filter, if
    there is one; then a `FAILURE`, or nothing more once the program runs. An order is one byte with
    the descriptors of the order itself, standard output, error, input and the files; one byte more
    lets the program be executed.

    Args:
        supervisor: Where it is.
        filter_program: The filter of system calls beside Landlock, where that confines programs.
        readable: What the last program could read.
    """
    step = Step.RECEIVE
    try:
        _reset()
        if hasattr(os, "O_PATH"):
            privileges.die_with_parent()
        _rehearse()
        confining = Confining(filter_program, readable) if filter_program is not None else None
        listener = [confining.listener] if confining and confining.listener else []
        send_descriptors(supervisor, b"!", listener)
        data, received = receive_descriptors(supervisor, 1)
        if data:  # else the supervisor is gone
            order_file, *standard = received
            order = Order.read(order_file)
            supervisor = _moved(supervisor, len(standard))
            if confining is not None:
                confining.make_room(len(standard))
            for step, action in _steps(order, standard, supervisor, confining):  # noqa: B007  # a failure names it
                action()
    except OSError as error:
        supervisor.send(FAILURE.pack(step, error.errno or errno.EIO))
    except MemoryError:  # the limit leaves no room to start in
        supervisor.send(FAILURE.pack(step, errno.ENOMEM))
    finally:
        os._exit(1)


def _steps(
    order: Order, standard: Sequence[int], supervisor: socket.socket, confining: Confining | None
) -> Sequence[tuple[Step, Callable[[], object]]]:
    """All that is done, in the order in which each still may be done after those before it."""
    steps: list[tuple[Step, Callable[[], object]]] = [
        (Step.DESCRIPTORS, lambda: _place(standard)),
        (Step.DIRECTORY, lambda: os.chdir(order.cwd)),
        (Step.LIMITS, lambda: apply_limits(*order.limits)),
    ]
    if confining is not None:
        steps += [
            (Step.PRIVILEGES, privileges.drop_capabilities),
            (Step.LANDLOCK, lambda: confining.restrict(order.readable, order.writable)),
            (Step.FILTER, confining.check),
        ]
    steps.append((Step.EXECUTE, lambda: _execute(order, supervisor)))
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


def _rehearse() -> None:
    """Does what a start will do, without effect, while nobody waits.

    Memory that a fork shares is copied when it is first used: most of what a start takes.
    """
    order = Order((b"/",), {}, b"/", (), (), (0, 0, 0, 0), b"")
    Order.unpack(order.pack())
    apply_limits(*order.limits)


def _execute(order: Order, supervisor: socket.socket) -> None:
    if supervisor.recv(1):  # else it is gone
        os.execve(order.argv[0], order.argv, order.environment)  # noqa: S606  # that is the point
