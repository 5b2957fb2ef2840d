"""The proof that a confinement works here: a program that tries to get around it."""

from __future__ import annotations

import os
import socket
import sys
import threading
from importlib.resources import files
from pathlib import Path

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import Confinement, Plan
from tools.sandbox.processes.confinement.reach import Reach
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.models import Prepared
from tools.sandbox.processes.temporary import TemporaryPlace

__all__ = ["Probe"]

SECONDS = 20.0
"""How long a probe may take; it takes a twentieth of one."""

_HAVE_TO_WORK = ("write in the root", "write a temporary file")


class Probe:
    """Runs that program.

    Args:
        launcher: Starts it.
        reach: What it sees, as all programs do.
    """

    def __init__(self, launcher: Launcher, reach: Reach) -> None:
        self._launcher = launcher
        self._reach = reach

    async def run(self, confinement: Confinement) -> None:
        """Proves that a confinement works.

        Raises:
            UnavailableError: If it does not; the message says in what.
        """
        place = await anyio.to_thread.run_sync(_Place)
        try:
            await self._judge(confinement, place)
        finally:
            await anyio.to_thread.run_sync(place.close)

    async def _judge(self, confinement: Confinement, place: _Place) -> None:
        plan = self._plan(confinement, place)
        try:
            with anyio.fail_after(SECONDS):
                code, worked, complaint = await self._output(confinement.prepare(plan))
        except TimeoutError:
            raise UnavailableError(f"A program did not end in {SECONDS:g} seconds.") from None
        if code:
            reason = complaint or f"it ended with {code}"
            raise UnavailableError(f"A program could not be run: {reason}")
        for each in _HAVE_TO_WORK:
            if each not in worked:
                raise UnavailableError(f"A program could not {each}.")
        for each in worked:
            if each not in _HAVE_TO_WORK:
                raise UnavailableError(f"A program could {each}.")

    async def _output(self, prepared: Prepared) -> tuple[int, list[str], str]:
        running = await self._launcher.start(prepared)
        try:
            ending = await running.wait()
            # A few lines: they fit into the pipes, and nothing writes to them any more.
            worked, complaint = (
                os.read(fd, 1 << 16).decode(errors="replace")
                for fd in (running.stdout, running.stderr)
            )
            return ending.exit_code, worked.splitlines(), complaint.strip()
        finally:
            with anyio.CancelScope(shield=True):
                await running.aclose()

    def _plan(self, confinement: Confinement, place: _Place) -> Plan:
        text = (
            files("tools.sandbox.processes.confinement")
            .joinpath("attempts.py")
            .read_text(encoding="utf-8")
        )
        root = str(place.root)
        arguments = (root, str(place.private), str(place.tcp), str(place.udp))
        return Plan(
            argv=(sys.executable, "-I", "-S", "-c", text, *arguments),
            cwd=root,
            environment={"TMPDIR": confinement.temporary(str(place.scratch))},
            root=root,
            scratch=str(place.scratch),
            reach=self._reach,
            closed=(str(place.closed),),
        )


class _Place:
    """Directories and listeners to try it on.

    Attributes:
        root: A root.
        closed: A directory in it that is closed to writes.
        scratch: The private directory of the program, which its end removes.
        private: A directory outside, with a file and a Unix socket.
        tcp: Port of a TCP listener on loopback.
        udp: Port of a UDP socket on loopback that answers.
    """

    def __init__(self) -> None:
        self._place = TemporaryPlace()
        self.root, self.scratch, self.private = (
            Path(self._place.path, name) for name in ("root", "scratch", "private")
        )
        self.closed = self.root / "closed"
        for directory in (self.root, self.closed, self.scratch, self.private):
            directory.mkdir(mode=0o700)
        (self.private / "canary").write_text("secret", encoding="utf-8")
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._unix = socket.socket(socket.AF_UNIX)
        self._unix.bind(str(self.private / "socket"))
        self._unix.listen()
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self.tcp: int = self._tcp.getsockname()[1]
        self.udp: int = self._udp.getsockname()[1]
        self._answering = threading.Thread(target=self._answer, daemon=True)
        self._answering.start()

    def close(self) -> None:
        """Removes everything."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", self.udp))
        self._answering.join()
        for each in (self._tcp, self._unix, self._udp):
            each.close()
        self._place.close()

    def _answer(self) -> None:
        while True:
            data, sender = self._udp.recvfrom(16)
            if not data:
                return
            self._udp.sendto(b"!", sender)
