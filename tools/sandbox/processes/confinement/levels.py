"""Chooses the confinement: the first that is proved to work. Defines all but bubblewrap.

The proof is a program that tries to bypass it (`attempts.py`).

Landlock allows directory trees, and cannot exclude a path from one. Under it, command lines of
other processes stay visible, as they are to every user of the machine. Apple does not document the
profile language of sandbox-exec; our profile uses only what the files in
`/System/Library/Sandbox/Profiles` use. Only its text is tested: no macOS was available to run it.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.network import Networks
from tools.sandbox.processes.confinement.plan import (
    DEVICES,
    Confinement,
    Plan,
    ProtectedPathFinder,
    ProtectedPaths,
    VisiblePaths,
)
from tools.sandbox.processes.kernel.landlock import landlock_abi
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.models import LandlockRules, Level, Prepared, SandboxMode, SettingNames
from tools.sandbox.processes.output import communicate
from tools.sandbox.processes.temporary import PrivateDirectory

SECONDS = 20.0  # time limit of a probe, which takes 50 ms

_EXPECTED = ("write in the root", "write a temporary file")

_PROGRAM = "/usr/bin/sandbox-exec"

_ALWAYS = (
    "(version 1)",
    "(deny default)",
    "(allow process-fork process-exec)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    '(allow file-read* (literal "/"))',
    '(allow file-ioctl (literal "/dev/null") (literal "/dev/zero"))',
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
)

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class LevelFinding:
    """The result of testing a level."""

    level: Level
    works: bool
    detail: str  # its version, or the problem
    advice: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class Unconfined(Confinement):
    """Starts programs with limits and their own environment, but no confinement."""

    level = Level.NONE

    def describe(self) -> str:
        """Returns that there is no confinement."""
        return "no confinement"

    def prepare(self, plan: Plan) -> Prepared:
        """Returns the plan unchanged."""
        return plan.prepared()


class Levels:
    """Chooses a confinement; tests each once, best first."""

    def __init__(
        self,
        confinements: Sequence[Confinement],
        probe: Probe,
        protected: ProtectedPathFinder,
        mode: SandboxMode,
        names: SettingNames,
    ) -> None:
        self._names = names
        self._confinements = {each.level: each for each in confinements}
        self._probe = probe
        self._protected = protected
        self._mode = mode
        self._lock = anyio.Lock()
        self._found: dict[Level, LevelFinding] = {}
        self._warned = False

    async def choose(self) -> Confinement:
        """Returns the best confinement that works."""
        if self._mode is SandboxMode.OFF:
            return Unconfined()
        for level, confinement in self._confinements.items():
            if (await self._finding(level)).works:
                return confinement
        if self._mode is SandboxMode.REQUIRED:
            raise self._refusal()
        if not self._warned:
            self._warned = True
            _logger.warning(
                "Programs run unconfined, because no confinement works: %s", self._reasons()
            )
        return Unconfined()

    async def findings(self) -> list[LevelFinding]:
        """Returns the test results of all levels, best first."""
        return [await self._finding(level) for level in self._confinements]

    async def aclose(self) -> None:
        """Removes the files that the confinements created."""
        for confinement in self._confinements.values():
            await anyio.to_thread.run_sync(confinement.close)

    async def _finding(self, level: Level) -> LevelFinding:
        async with self._lock:
            if level not in self._found:
                self._found[level] = await self._try(self._confinements[level])
            return self._found[level]

    async def _try(self, confinement: Confinement) -> LevelFinding:
        level = confinement.level
        try:
            detail = await anyio.to_thread.run_sync(confinement.describe)
            confinement.check(await anyio.to_thread.run_sync(self._protected.find))
            problem = await self._probe.run(confinement)
        except UnavailableError as error:
            return await anyio.to_thread.run_sync(_failing, confinement, error)
        except Exception as error:  # noqa: BLE001  # any error means that the level does not work
            return LevelFinding(level, works=False, detail=f"{type(error).__name__}: {error}")
        if problem:
            detail += f", but the programs of a session share no network: {problem}"
        return LevelFinding(level, works=True, detail=detail)

    def _refusal(self) -> UnavailableError:
        advice = [action for each in self._found.values() for action in each.advice]
        if any(each.commands for each in self._found.values()):
            advice.append("`toolcrib doctor` prints the commands for that.")
        return UnavailableError(
            f"No program was run: the setting {self._names.sandbox} requires confinement, and none"
            f" works here ({self._reasons()})",
            next_actions=[*advice, f"Or ask the user to change {self._names.sandbox}."],
        )

    def _reasons(self) -> str:
        return "; ".join(f"{each.level}: {each.detail}" for each in self._found.values())


def _failing(confinement: Confinement, error: UnavailableError) -> LevelFinding:
    remedies = tuple(confinement.remedies(error.message))
    return LevelFinding(
        confinement.level,
        works=False,
        detail=error.message,
        advice=(*error.next_actions, *(each.advice for each in remedies)),
        commands=tuple(each.commands for each in remedies if each.commands),
    )


class Landlock(Confinement):
    """Confines programs with Landlock and seccomp."""

    level = Level.LANDLOCK
    shares_networks = True

    def describe(self) -> str:
        """Returns the version."""
        abi = landlock_abi()
        if not abi:
            raise UnavailableError(
                "This kernel has no Landlock, or it is switched off.",
                next_actions=["Use Linux 5.13 or later, with landlock in its parameter lsm."],
            )
        return f"Landlock ABI {abi}"

    def check(self, protected: ProtectedPaths) -> None:
        """Raises an error if any path must be protected, since the rules can only allow."""
        for path in (*protected.hidden, *protected.read_only):
            raise UnavailableError(
                f"Landlock cannot keep programs from {path} within what they may use.",
                next_actions=[
                    "Ask the user to keep it outside the root, or to install bubblewrap."
                ],
            )

    def prepare(self, plan: Plan) -> Prepared:
        """Builds the Landlock rules under which the launcher starts the program."""
        own = (plan.scratch, *((plan.home,) if plan.home else ()), *DEVICES)
        outside = zip(plan.outside, plan.ways, strict=True)
        own += tuple(way for each, way in outside if each.writes)
        writable = (plan.way_in, *own) if plan.writes else own
        readable = ("/proc", *plan.visible.readable, *(() if plan.writes else (plan.root,)))
        rules = LandlockRules(readable=readable, writable=writable)
        return replace(plan.prepared(), landlock=rules)


class SandboxExec(Confinement):
    """Confines programs with sandbox-exec."""

    level = Level.SANDBOX_EXEC

    def describe(self) -> str:
        """Returns its name, as it has no version."""
        if not Path(_PROGRAM).exists():
            raise UnavailableError(f"There is no {_PROGRAM}.")
        return "sandbox-exec"

    def prepare(self, plan: Plan) -> Prepared:
        """Prefixes the program with the profile."""
        argv = (_PROGRAM, "-p", profile_text(plan), *plan.argv)
        return replace(plan.prepared(), argv=argv)


def profile_text(plan: Plan) -> str:
    """Returns the profile of a plan, in which the last matching rule decides."""
    return "\n".join((*_ALWAYS, *_rules(plan)))


def _rules(plan: Plan) -> Iterator[str]:
    links = (link for link, _target in plan.visible.links)
    own = (plan.scratch, *((plan.home,) if plan.home else ()))
    for path in (*plan.visible.readable, *links, plan.root, *own):
        yield f"(allow file-read* {_tree(path)})"
    for path in DEVICES:
        yield f"(allow file-read* file-write-data (literal {_quote(path)}))"
    outside = tuple(each.path for each in plan.outside if each.writes)
    for path in (*own, *outside, *((plan.root,) if plan.writes else ())):
        yield f"(allow file-write* {_tree(path)})"
    for path in (*plan.pinned, *plan.protected.pinned):  # neither moved nor removed
        yield f"(deny file-write-unlink (literal {_quote(path)}))"
    for path in (*plan.write_protected, *plan.protected.read_only):
        yield f"(deny file-write* {_tree(path)})"
    for path in (*plan.protected.hidden, *plan.hidden):
        yield f"(deny file-read* file-write* {_tree(path)})"


def _tree(path: str) -> str:
    return f"(subpath {_quote(path)})"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


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
