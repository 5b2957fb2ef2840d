"""Proves that a confinement works, with a program that tries to bypass it."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.network import Networks
from tools.sandbox.processes.confinement.plan import Confinement, Plan, VisiblePaths
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.output import communicate
from tools.sandbox.processes.temporary import PrivateDirectory

SECONDS = 20.0  # time limit of a probe, which takes 50 ms

_EXPECTED = ("write in the root", "write a temporary file")


class Probe:
    """Runs the test program."""

    def __init__(self, launcher: Launcher, visible: VisiblePaths, networks: Networks) -> None:
        self._launcher = launcher
        self._visible = visible
        self._networks = networks

    async def run(self, confinement: Confinement) -> str:
        """Tests a confinement; returns why programs cannot share a network in it, or ""."""
        if not confinement.shares_networks:
            await self._try(confinement)
            return ""
        try:
            visit = await self._networks.enter(confinement)
            try:
                await self._try(confinement, visit.namespaces)
            finally:
                visit.leave()
        except UnavailableError as error:
            await self._try(confinement)
            await self._networks.give_up(error.message)
            return error.message
        return ""

    async def _try(self, confinement: Confinement, namespaces: tuple[int, ...] = ()) -> None:
        # Shielded: cancelling a call while these are created or removed would leak the sockets.
        with anyio.CancelScope(shield=True):
            surroundings = await anyio.to_thread.run_sync(_Surroundings)
        try:
            plan = replace(self._plan(confinement, surroundings), namespaces=namespaces)
            running = await self._launcher.start(confinement.prepare(plan))
            output, errors = bytearray(), bytearray()
            ended = await communicate(running, output.extend, errors.extend, seconds=SECONDS)
            heard = surroundings.heard()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(surroundings.close)
        if ended.timed_out:
            raise UnavailableError(f"A program did not end in {SECONDS:g} seconds.")
        if ended.exit_code:
            error = errors.decode(errors="replace").strip()
            reason = error or f"it ended with {ended.exit_code}"
            raise UnavailableError(f"A program could not be run: {reason}")
        worked = output.decode(errors="replace").splitlines()
        for each in _EXPECTED:
            if each not in worked:
                raise UnavailableError(f"A program could not {each}.")
        for each in (*worked, *heard):
            if each not in _EXPECTED:
                raise UnavailableError(f"A program could {each}.")

    def _plan(self, confinement: Confinement, surroundings: _Surroundings) -> Plan:
        text = Path(__file__).with_name("attempts.py").read_text(encoding="utf-8")
        root, scratch = str(surroundings.root), str(surroundings.scratch)
        ports = (str(surroundings.tcp), str(surroundings.udp))
        arguments = (root, str(surroundings.private), *ports)
        return Plan(
            argv=(sys.executable, "-I", "-S", "-c", text, *arguments),
            cwd=root,
            environment={"TMPDIR": confinement.temporary(scratch)},
            root=root,
            scratch=scratch,
            visible=self._visible,
            write_protected=(str(surroundings.write_protected),),
        )


class _Surroundings:
    """Directories and listeners that the test program tries to use.

    Attributes:
        private: A directory outside, with a file and a Unix socket.
    """

    def __init__(self) -> None:
        self._directory = PrivateDirectory()
        self.root, self.scratch, self.private = (
            Path(self._directory.path, name) for name in ("root", "scratch", "private")
        )
        self.write_protected = self.root / "protected"
        for directory in (self.root, self.write_protected, self.scratch, self.private):
            directory.mkdir(mode=0o700)
        (self.private / "canary").write_text("secret", encoding="utf-8")
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._unix = socket.socket(socket.AF_UNIX)
        _bind(self._unix, self.private, "socket")
        self._unix.listen()
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self.tcp: int = self._tcp.getsockname()[1]
        self.udp: int = self._udp.getsockname()[1]
        for each in (self._tcp, self._unix, self._udp):
            each.settimeout(0)

    def heard(self) -> list[str]:
        """Returns the connections that the listeners received."""
        heard = []
        for name, listener in (
            ("connect by TCP", self._tcp),
            ("connect to a Unix socket", self._unix),
        ):
            with suppress(BlockingIOError):
                listener.accept()[0].close()
                heard.append(name)
        with suppress(BlockingIOError):
            self._udp.recv(16)
            heard.append("send by UDP")
        return heard

    def close(self) -> None:
        """Removes everything."""
        for each in (self._tcp, self._unix, self._udp):
            each.close()
        self._directory.close()


def _bind(listener: socket.socket, directory: Path, name: str) -> None:
    """Binds a Unix socket in a directory whose path may exceed the length of an address."""
    if sys.platform != "linux":
        listener.bind(str(directory / name))
        return
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)
