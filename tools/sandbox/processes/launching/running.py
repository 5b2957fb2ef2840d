"""A program that was started, as the server sees it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.launching.wire import REPORT_SIZE, Report, ReportKind
from tools.sandbox.processes.models import Ending
from tools.sandbox.processes.scratch import remove_scratch

__all__ = ["Running"]

_KILLED = Ending(128 + 9)  # SIGKILL; Windows has no name for it


class Running:
    """A program that runs, with everything that it has started; close it with `aclose`.

    Attributes:
        pid: The program's process id.
        stdout: Descriptor that its standard output is read from, without blocking.
        stderr: The same of its standard error.
        scratch: The directory that is removed in the end, should nobody else do it; empty for none.
    """

    def __init__(
        self, control: socket.socket, stdout: int, stderr: int, forget: Callable[[Running], object]
    ) -> None:
        control.setblocking(False)  # noqa: FBT003  # the standard library has it so
        for fd in (stdout, stderr):
            os.set_blocking(fd, False)  # the standard library has it so
        self.pid = 0
        self.stdout = stdout
        self.stderr = stderr
        self.scratch = ""
        self._control = control
        self._forget = forget
        self._reading = anyio.Lock()
        self._received = b""
        self._ending: Ending | None = None
        self._closed = False

    async def wait(self) -> Ending:
        """Waits until the program has ended and nothing of it is left, its scratch included."""
        async with self._reading:
            while self._ending is None:
                report = await self._receive()
                if report is not None and report.kind != ReportKind.ENDED:
                    continue  # its start was given up before it was known how that went
                if report is None and self.scratch:
                    # The supervisor was ended from outside, and the zygote ended the rest.
                    await anyio.to_thread.run_sync(remove_scratch, os.fsencode(self.scratch))
                self._ending = Ending(report.value) if report else _KILLED
            return self._ending

    async def kill(self) -> None:
        """Ends the program and all that it has started; returns when nothing is left."""
        if self._ending is None:
            with suppress(OSError):  # it has just ended
                self._control.shutdown(socket.SHUT_WR)
        await self.wait()

    async def aclose(self) -> None:
        """Ends it if it still runs, and closes the descriptors."""
        with anyio.CancelScope(shield=True):
            if not self._closed:
                await self.kill()
            self._close()

    async def started(self) -> Report | None:
        """The supervisor's first report; None when it is gone.

        Raises:
            UnavailableError: If it was ended before, because the launcher is closed.
        """
        async with self._reading:
            if self._ending is not None:
                raise UnavailableError("The program was ended while it was started.")
            return await self._receive()

    async def _receive(self) -> Report | None:
        """The supervisor's next report; None when it is gone."""
        while len(self._received) < REPORT_SIZE:
            await anyio.wait_readable(self._control)
            try:
                data = self._control.recv(REPORT_SIZE - len(self._received))
            except BlockingIOError:
                continue
            except ConnectionError:
                return None
            if not data:
                return None
            self._received += data
        report, self._received = Report.unpack(self._received), b""
        return report

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for end in (self.stdout, self.stderr, self._control):
            anyio.notify_closing(end)
        self._control.close()
        os.close(self.stdout)
        os.close(self.stderr)
        self._forget(self)
