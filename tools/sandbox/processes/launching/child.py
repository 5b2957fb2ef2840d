"""A program between fork and exec: waits for its order, then becomes the program.

Building the Landlock rules and the system call filter takes longer than everything else between
fork and exec, and they are the same for nearly every program, so they are built before the order
comes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Callable, Sequence
from typing import NoReturn

from tools.sandbox.processes.kernel import process, seccomp
from tools.sandbox.processes.kernel.landlock import PathRules
from tools.sandbox.processes.kernel.process import join
from tools.sandbox.processes.launching.messages import (
    Order,
    Step,
    receive_descriptors,
    send_descriptors,
)

FAILURE = struct.Struct("=ii")  # the failed step and its error number, as sent to the supervisor
BY_FD = b"/proc/self/fd/"  # prefix of a working directory reached through the root's descriptor
_STANDARD = 2  # the last of the standard descriptors

NO_ORDER = Order((b"/",), {}, b"/", (), (), (0, 0, 0, 0), 0, b"", 0)
"""Placeholder for the order before the first one."""


def become_program(
    supervisor: socket.socket, filter_program: bytes | None, last: Order
) -> NoReturn:
    """Becomes the program of an order, or exits.

    The supervisor receives one byte when it may send the order, along with the filter's listener,
    if any; then a `FAILURE`, or nothing more once the program runs. An order is one byte with the
    descriptors of the order itself, standard output, error, input, files and namespaces; one more
    byte lets the program be executed.

    `filter_program`: the filter used with Landlock; None if Landlock does not confine programs.
    """
    step = Step.RECEIVE
    try:
        _reset()
        if hasattr(os, "O_PATH"):
            process.die_with_parent()
        # Runs the code of a start without effect, to copy the shared memory pages ahead of time.
        Order.unpack(NO_ORDER.pack())
        process.apply_limits(*NO_ORDER.limits)
        confinement = _Confinement(filter_program, last) if filter_program is not None else None
        listener = [confinement.listener] if confinement and confinement.listener else []
        send_descriptors(supervisor, b"!", listener)
        data, received = receive_descriptors(supervisor, 1)
        if data:  # else the supervisor is gone
            order_file, *passed = received
            order = Order.read(order_file)
            standard = passed[: len(passed) - order.namespaces]
            namespaces = passed[len(standard) :]
            # Above the program's descriptors.
            moved = fcntl.fcntl(supervisor.detach(), fcntl.F_DUPFD_CLOEXEC, len(standard))
            supervisor = socket.socket(fileno=moved)
            if confinement is not None:
                confinement.move_above(len(standard))
            steps = _steps(order, standard, namespaces, supervisor, confinement)
            for step, action in steps:  # noqa: B007  # for failures
                action()
    except OSError as error:
        supervisor.send(FAILURE.pack(step, error.errno or errno.EIO))
    finally:
        os._exit(1)


def _steps(
    order: Order,
    standard: Sequence[int],
    namespaces: Sequence[int],
    supervisor: socket.socket,
    confinement: _Confinement | None,
) -> Sequence[tuple[Step, Callable[[], object]]]:
    """Returns all steps, ordered so that none forbids a later one."""
    steps: list[tuple[Step, Callable[[], object]]] = [
        (Step.NAMESPACES, lambda: join(namespaces)),
        (Step.DESCRIPTORS, lambda: _place(standard, inherit=not order.cwd.startswith(BY_FD))),
        (Step.DIRECTORY, lambda: os.chdir(order.cwd)),
        (Step.LIMITS, lambda: process.apply_limits(*order.limits)),
    ]
    if confinement is not None:
        steps += [
            (Step.PRIVILEGES, process.drop_capabilities),
            (Step.LANDLOCK, lambda: confinement.restrict(order)),
            (Step.FILTER, lambda: confinement.seal(order)),
        ]
    steps.append((Step.EXECUTE, lambda: _execute(order, supervisor)))
    return steps


def _reset() -> None:
    """Resets the session, signals and umask as a login does."""
    os.setsid()  # also: no controlling terminal
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)


def _place(standard: Sequence[int], *, inherit: bool) -> None:
    """Puts standard output, error, input and the files where programs expect them.

    All other descriptors are closed on exec; so is the root's if it only serves the working
    directory.
    """
    output, error, entry, *files = (
        fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(standard)) for fd in standard
    )
    for target, fd in enumerate((entry, output, error, *files)):
        os.dup2(fd, target, inheritable=inherit or target <= _STANDARD)


def _execute(order: Order, supervisor: socket.socket) -> None:
    if supervisor.recv(1):  # else it has gone
        os.execve(order.argv[0], order.argv, order.environment)  # noqa: S606  # no shell involved


class _Confinement:
    """Landlock and the system call filter of this process.

    Errors are raised only when the program starts, as nothing receives them before.
    """

    def __init__(self, filter_program: bytes, last: Order) -> None:
        # Descriptor for the filter's questions; None if it could not be installed.
        self.listener: int | None = None
        self._failure: OSError | None = None
        self._rules: PathRules | None = None
        try:
            self._rules = _rules(last)
            # The result is not needed; this only copies its memory pages ahead of time.
            self._fit(last)
            self.listener = seccomp.install(filter_program)
        except OSError as error:
            self._failure = error

    def seal(self, order: Order) -> None:
        """Completes the filter, or raises its earlier error."""
        if self._failure is not None:
            raise self._failure
        seccomp.add(seccomp.sealing(networked=bool(order.namespaces)))

    def move_above(self, lowest: int) -> None:
        if self._rules is not None:
            self._rules.move_above(lowest)

    def restrict(self, order: Order) -> None:
        rules = self._rules
        if rules is None or not self._fit(order):
            rules = _rules(order)
        rules.allow_writes(order.writable)
        rules.enter()

    def _fit(self, order: Order) -> bool:
        networked = bool(order.namespaces)
        return self._rules is not None and self._rules.are_of(order.readable, networked=networked)


def _rules(order: Order) -> PathRules:
    return PathRules(order.readable, networked=bool(order.namespaces))
