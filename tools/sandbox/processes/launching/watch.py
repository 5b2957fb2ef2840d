"""One program under its supervisor, from its start until nothing of it is left."""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress

from tools.sandbox.processes.launching.child import FAILURE
from tools.sandbox.processes.launching.metadata import MetadataChanges
from tools.sandbox.processes.launching.reaping import end_descendants, end_group, exit_code, reap
from tools.sandbox.processes.launching.wire import Report, ReportKind
from tools.sandbox.processes.scratch import remove_scratch

__all__ = ["Watch"]


class Watch:
    """Watches a program; the caller is its parent and a child subreaper.

    Args:
        pid: The program's process id.
        control: Its own socket, which leads to the launcher.
        status: Where it tells how its start goes.
        wakeup: A descriptor that is readable when a child has ended.
        changes: Answers what the program's filter asks about; None without a filter.
        alone: Whether this process's signals reach its descendants only.
    """

    def __init__(
        self,
        pid: int,
        control: socket.socket,
        status: socket.socket,
        wakeup: int,
        changes: MetadataChanges | None,
        *,
        alone: bool,
    ) -> None:
        self._pid = pid
        self._control = control
        self._status = status
        self._wakeup = wakeup
        self._changes = changes
        self._alone = alone
        self._ending: int | None = None

    def run(self, scratch: bytes) -> None:
        """Reports its start, and its end when nothing is left.

        Args:
            scratch: The directory that is removed in the end; empty for none.
        """
        self._report(self._started())
        self._watch()
        self._end_all()
        if self._changes is not None:
            os.close(self._changes.listener)
        if scratch:
            remove_scratch(scratch)
        self._report(Report(ReportKind.ENDED, exit_code(self._ending or 0)))

    def _started(self) -> Report:
        """How the start went: the program's end of the socket closes when it is executed."""
        with self._status as status, suppress(ConnectionError):
            if failure := status.recv(FAILURE.size):
                return Report(ReportKind.FAILED, *FAILURE.unpack(failure))
        return Report(ReportKind.STARTED, self._pid)

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
        if hasattr(os, "O_PATH"):
            end_descendants(self._note, alone=self._alone)
        else:
            end_group(self._pid)
            while self._ending is None:
                self._note(*os.waitpid(self._pid, 0))

    def _report(self, report: Report) -> None:
        with suppress(OSError):  # the launcher is gone
            self._control.sendall(report.pack())
