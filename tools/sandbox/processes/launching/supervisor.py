"""The parent process of a program, which makes sure that nothing of the program is left.

It forks the process that becomes the program before the program is known, so that a start need not
wait for a fork. If the launcher disappears for any reason, the program's socket closes, and
everything is killed. Afterwards the supervisor may serve again.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from tools.sandbox.processes.kernel import process
from tools.sandbox.processes.kernel.landlock import keep_signals_inside
from tools.sandbox.processes.kernel.seccomp import protecting
from tools.sandbox.processes.launching.child import BY_FD, FAILURE, NO_ORDER, become_program
from tools.sandbox.processes.launching.messages import (
    EndReason,
    Order,
    Report,
    ReportKind,
    receive_descriptors,
    send_descriptors,
)
from tools.sandbox.processes.launching.metadata import MetadataChanges
from tools.sandbox.processes.launching.usage import UsageWatch
from tools.sandbox.processes.scratch import remove_scratch

STATUS = struct.Struct("=i")
"""A supervisor's message to the zygote, its process ID: with a program's socket it has an order,
without one it waits for the next."""

_LINUX = hasattr(os, "O_PATH")


def supervise(
    orders: socket.socket,
    statuses: socket.socket,
    filter_program: bytes | None,
    protected: Sequence[int],
    *,
    zygote: int,
    scoped: bool,
    reused: bool,
) -> None:
    """Starts the program of the next order, and returns when nothing of it is left.

    `filter_program`: the filter used with Landlock; None if only their command lines confine
    programs.
    `protected`: processes that a filtered program may not signal, in addition to this one and the
    zygote.
    `scoped`: whether the kernel can restrict its signals, and the program's, to descendants.
    `reused`: whether it serves further orders, until the launcher is gone.
    """
    os.setsid()
    if _LINUX:
        process.become_subreaper()
    if scoped:
        keep_signals_inside(below_others=filter_program is not None)
    if filter_program:
        filter_program = protecting(filter_program, (*protected, zygote, os.getpid()))
    supervisor = _Supervisor(orders, statuses, filter_program, zygote=zygote, scoped=scoped)
    while supervisor.serve() and reused:
        with suppress(ConnectionError):
            statuses.send(STATUS.pack(os.getpid()))


class _Supervisor:
    def __init__(
        self,
        orders: socket.socket,
        statuses: socket.socket,
        filter_program: bytes | None,
        *,
        zygote: int,
        scoped: bool,
    ) -> None:
        self._orders = orders
        self._statuses = statuses
        self._filter = filter_program
        self._scoped = scoped
        self._last = NO_ORDER  # the previous order, which the next one probably resembles
        self._zygote = zygote
        signal.signal(signal.SIGCHLD, self._on_child_ended)
        self._wakeup = open_wakeup()

    def serve(self) -> bool:
        """Serves one order; returns False if there will be no more."""
        if _LINUX:
            process.die_with_parent()
        if self._is_orphan():
            return False
        child, supervisor = socket.socketpair()
        pid = os.fork()
        if not pid:
            child.close()
            become_program(supervisor, self._filter, self._last)
        supervisor.close()
        _, listener = receive_descriptors(child, 1)  # the child is ready
        data, received = receive_descriptors(self._orders, 1)
        if not data:  # the launcher is gone
            return False
        control, order_file, *standard = received
        try:
            send_descriptors(child, b"!", [order_file, *standard])
        except ConnectionError:  # the child was killed
            return False
        order = Order.read(order_file)
        tops = []
        if listener:  # resolved before the program runs and could redirect the paths
            for path in order.writable:  # held paths have other descriptors here
                number = path.removeprefix(BY_FD)
                held = number != path
                tops.append(
                    os.path.realpath(BY_FD + b"%d" % standard[int(number)] if held else path)
                )
        for fd in (order_file, *standard):
            os.close(fd)
        self._last = order
        changes = MetadataChanges(listener[0], tops) if listener else None
        if _LINUX:
            process.outlive_parent()
        with suppress(ConnectionError):  # the zygote has ended
            send_descriptors(self._statuses, STATUS.pack(os.getpid()), [control])
        with suppress(ConnectionError):  # the child has failed
            child.send(b"!")  # the program may be executed: from here on it will be killed
        with socket.socket(fileno=control) as channel:
            watch = _Watch(pid, channel, child, self._wakeup, changes, scoped=self._scoped)
            watch.run(order)
        return True

    def _on_child_ended(self, _signal: int, _frame: object) -> None:
        """Leaves waiting orders to others if the zygote has ended."""
        if self._is_orphan():
            self._orders.close()

    def _is_orphan(self) -> bool:
        return os.getppid() != self._zygote


class _Watch:
    """Watches a program until nothing of it is left, as its parent and a child subreaper."""

    def __init__(
        self,
        pid: int,
        control: socket.socket,
        status: socket.socket,
        wakeup: int,
        changes: MetadataChanges | None,
        *,
        scoped: bool,
    ) -> None:
        self._pid = pid
        self._control = control
        self._status = status
        self._wakeup = wakeup
        self._changes = changes
        self._scoped = scoped
        self._ending: int | None = None
        self._is_urgent = False  # whether it must count processes while they multiply

    def run(self, order: Order) -> None:
        """Reports its start, and its end once nothing is left; then removes its scratch."""
        self._report(self._started())
        processes = order.limits[1]
        usage = None
        if _LINUX and (order.memory or processes):
            usage = UsageWatch(order.memory, processes, scoped=self._scoped)
        self._is_urgent = bool(usage and processes)
        self._run_first(first=True)
        reason = self._watch(usage)
        self._end_all()
        self._run_first(first=False)
        if self._changes is not None:
            os.close(self._changes.listener)
        if order.scratch:
            remove_scratch(order.scratch)
        self._report(Report(ReportKind.ENDED, exit_code(self._ending or 0), reason))

    def _started(self) -> Report:
        with self._status as status, suppress(ConnectionError):
            if failure := status.recv(FAILURE.size):
                return Report(ReportKind.FAILED, *FAILURE.unpack(failure))
        return Report(ReportKind.STARTED, self._pid)

    def _watch(self, usage: UsageWatch | None) -> EndReason:
        """Returns when the program has ended or must be killed, by request or for its usage."""
        poller = select.poll()
        for fd in (self._wakeup, self._control.fileno()):
            poller.register(fd, select.POLLIN)
        changes = self._changes
        if changes is not None:
            poller.register(changes.listener, select.POLLIN)
        while self._ending is None:
            if usage is not None and (reason := usage.check()):
                return reason
            for fd, events in poller.poll(None if usage is None else 1000 * usage.seconds_left()):
                if fd == self._wakeup:
                    os.read(fd, 4096)
                    reap(self._note)
                elif changes is None or fd != changes.listener:
                    return EndReason.NONE
                elif events & select.POLLIN:
                    self._run_first(first=False)  # the program decides how much work there is
                    changes.answer()
                    self._run_first(first=True)
                else:  # no process is left under the filter
                    poller.unregister(fd)
        return EndReason.NONE

    def _run_first(self, *, first: bool) -> None:
        if self._is_urgent:
            process.run_first(first=first)

    def _note(self, pid: int, status: int) -> None:
        if pid == self._pid:
            self._ending = status

    def _end_all(self) -> None:
        if _LINUX:
            end_descendants(self._note, scoped=self._scoped)
        else:
            end_group(self._pid)
            while self._ending is None:
                self._note(*os.waitpid(self._pid, 0))

    def _report(self, report: Report) -> None:
        with suppress(OSError):  # the launcher is gone
            self._control.sendall(report.pack())


def open_wakeup() -> int:
    """Returns a descriptor that is readable when a child has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


_SIGNALLED = 128  # added by shells to the number of the signal that ended a process

Ended = Callable[[int, int], object]
"""Called with the process ID and status (waitpid(2)) of each child that has ended."""


def end_descendants(ended: Ended, *, scoped: bool) -> None:
    """Kills every descendant, and returns when none is left.

    The caller is a child subreaper (prctl(2)): orphans become its children.

    `scoped`: whether signals of this process reach only its descendants, as in its own Landlock
    domain: then the kernel kills them all at once, and none can start another.
    """
    if not scoped:
        end_children(ended)
        return
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            ended(*os.waitpid(-1, 0))


def end_children(ended: Ended, *, keep: Collection[int] = ()) -> None:
    """Kills every child except some, and those that thereby become children.

    A child keeps its process ID until it is waited for, so no other process is hit. As long as a
    descendant lives there is a child, so none is missed.
    """
    while doomed := [pid for pid in children() if pid not in keep]:
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        for pid in doomed:
            ended(*os.waitpid(pid, 0))


def end_group(leader: int) -> None:
    """Kills a process group: all that can be found without a subreaper, as on macOS.

    Misses programs that leave the group with setsid(2). The leader created it, and has not been
    waited for.
    """
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses if only zombies are left
        os.killpg(leader, signal.SIGKILL)


def reap(ended: Ended) -> None:
    """Waits for every child that has already ended."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            ended(pid, status)


def exit_code(status: int) -> int:
    """Converts a status of waitpid(2) as shells do: for a signal, 128 plus its number."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def children() -> list[int]:
    """Returns the process IDs of this process's children, including zombies."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as listed:  # noqa: PTH123  # pathlib is slow to load
            return [int(pid) for pid in listed.read().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [int(entry) for entry in os.listdir("/proc") if _is_child(entry)]  # noqa: PTH208  # pathlib is slow to load


def _is_child(entry: str) -> bool:
    if not entry.isdigit():
        return False
    try:
        with open(f"/proc/{entry}/stat", "rb") as status:  # noqa: PTH123  # pathlib is slow to load
            # The name, in parentheses, may contain anything; the state and the parent follow it.
            return int(status.read().rpartition(b")")[2].split()[1]) == os.getpid()
    except OSError:  # ended meanwhile
        return False
