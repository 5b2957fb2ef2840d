"""Starts programs, confined as the settings require."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.confinement.bubblewrap import Bubblewrap
from tools.sandbox.processes.confinement.landlocked import Landlock
from tools.sandbox.processes.confinement.levels import LevelFinding, Levels
from tools.sandbox.processes.confinement.network import Network
from tools.sandbox.processes.confinement.plan import Confinement, Kept, Plan
from tools.sandbox.processes.confinement.probe import Probe
from tools.sandbox.processes.confinement.reach import find_reach, is_beneath
from tools.sandbox.processes.confinement.sandbox_exec import SandboxExec
from tools.sandbox.processes.confinement.variables import process_variables
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.launching.program import Program
from tools.sandbox.processes.models import Command, Level, Limits, Prepared, SandboxMode
from tools.sandbox.processes.protection.kept import Keeper
from tools.sandbox.processes.protection.protection import ClosedPlaces, Protection
from tools.sandbox.processes.temporary import TemporaryPlace

if TYPE_CHECKING:
    from tools.sandbox.web.guard import AddressGuard

__all__ = ["Processes"]


class Processes:
    """Starts programs in a root.

    Args:
        root: The root.
        protected: What they may neither read nor write.
        read_only: What they may not write.
        mode: What is wanted where no confinement works.
        limits: What each process may use.
        environment: Variables of the server that they are given, as `chosen_variables` has them.
        readable: What they may read and run beside the root and the system.
        network: Hosts that they may reach, as `AllowedHosts` has them.
        sandbox: Resolves where they start.
        data_dir: Where things go that they put into protected places.
        guard: Makes what judges the addresses of those hosts.
    """

    def __init__(
        self,
        *,
        root: Path,
        protected: Sequence[Path],
        read_only: Sequence[Path],
        mode: SandboxMode,
        limits: Limits,
        environment: Mapping[str, str],
        readable: Sequence[Path],
        network: Sequence[str],
        sandbox: Sandbox,
        data_dir: Path,
        guard: Callable[[], AddressGuard],
    ) -> None:
        self._root = os.path.realpath(root)
        self._limits = limits
        self._environment = dict(environment)
        self._sandbox = sandbox
        self._reach = find_reach(readable)
        self._keeper = Keeper(self._root, self._reach, protected, read_only)
        self._protection = Protection(self._root, data_dir / "quarantine")
        self._network = Network(network, guard)
        self._launcher = Launcher()
        search_path = self._environment.get("PATH", os.defpath)
        self._levels = Levels(
            [SandboxExec()]
            if sys.platform == "darwin"
            else [Bubblewrap(search_path, self._root, self._reach), Landlock()],
            Probe(self._launcher, self._reach),
            self._keeper,
            mode,
        )
        self._place = TemporaryPlace()  # what is left in it, the next server removes
        self._programs: set[Program] = set()
        self._seen: dict[Level, frozenset[str]] = {}

    async def level(self) -> Level:
        """What confines programs, proved by a real run when it is first asked for.

        Raises:
            UnavailableError: If no confinement works, and one is required.
        """
        return (await self._levels.choose()).level

    async def is_confined(self) -> bool:
        """Whether programs are confined at all; also true where they are refused else."""
        try:
            return await self.level() is not Level.NONE
        except UnavailableError:
            return True

    async def findings(self) -> list[LevelFinding]:
        """Which levels work, and why the others do not; the best first."""
        return await self._levels.findings()

    async def start(self, command: Command) -> Program:
        """Starts a program; it runs when this returns.

        Args:
            command: The program.

        Raises:
            UnavailableError: If there is no such program, or it cannot be confined as required.
            ToolError: If the directory that it is to start in cannot be used.
        """
        confinement = await self._levels.choose(fast=command.fast)
        proxy, notes = await self._proxy(command, confinement)
        prepared = await anyio.to_thread.run_sync(self._prepare, command, confinement, proxy)
        try:
            running = await self._launcher.start(prepared)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._abandon, command, prepared.scratch)
            raise
        program = Program(running, confinement.level, notes, partial(self._finish, command))
        self._programs = {each for each in self._programs if not each.has_ended} | {program}
        return program

    async def aclose(self) -> None:
        """Ends everything that it has started."""
        with anyio.CancelScope(shield=True):
            await self._launcher.aclose()
            for program in tuple(self._programs):
                await program.wait()
            await self._network.aclose()
            await self._levels.aclose()
            await anyio.to_thread.run_sync(self._place.close)

    def _prepare(self, command: Command, confinement: Confinement, proxy: str) -> Prepared:
        """Makes all that a program needs, and looks at the root; called in threads."""
        with ExitStack() as undoing:
            closed = ClosedPlaces()
            if command.writes:
                closed = self._protection.begin()
                undoing.callback(self._protection.end)
            scratch = _make_scratch(self._place.path)
            undoing.callback(shutil.rmtree, scratch, ignore_errors=True)
            prepared = confinement.prepare(
                self._plan(command, confinement, closed, scratch=scratch, proxy=proxy)
            )
            undoing.pop_all()
        return prepared

    def _abandon(self, command: Command, scratch: str) -> None:
        """Undoes `_prepare` where nothing was started."""
        shutil.rmtree(scratch, ignore_errors=True)
        if command.writes:
            self._protection.end()

    def _plan(
        self,
        command: Command,
        confinement: Confinement,
        closed: ClosedPlaces,
        *,
        scratch: str,
        proxy: str,
    ) -> Plan:
        kept = Kept()
        if confinement.level is not Level.NONE:
            kept = self._keeper.find()
            confinement.check(kept)
        cwd = self._directory(command.cwd)
        temporary = confinement.temporary(scratch)
        seen = self._seen_folders(confinement)
        variables = process_variables(
            self._environment,
            command.environment,
            home=f"{temporary}/home",
            temporary=temporary,
            cwd=cwd,
            sees=lambda folder: folder in seen,
        )
        return Plan(
            argv=(self._program(command.argv[0], confinement), *command.argv[1:]),
            cwd=cwd,
            environment=variables,
            stdin=command.stdin,
            root=self._root,
            writes=command.writes,
            scratch=scratch,
            reach=self._reach,
            kept=kept,
            closed=closed.closed,
            own=closed.own,
            proxy=proxy,
            limits=self._limits,
        )

    async def _proxy(
        self, command: Command, confinement: Confinement
    ) -> tuple[str, tuple[str, ...]]:
        """The socket of the proxy, where the program may have one, and what to say else."""
        if not command.network or not self._network or confinement.level is Level.NONE:
            return "", ()
        if confinement.level is Level.BUBBLEWRAP:
            return await self._network.socket(), ()
        note = (
            f"It ran without network: {confinement.level} cannot let single hosts through "
            "(system.network needs bubblewrap)."
        )
        return "", (note,)

    async def _finish(self, command: Command) -> tuple[str, ...]:
        notes: tuple[str, ...] = ()
        if command.writes:
            with anyio.CancelScope(shield=True):
                notes = await anyio.to_thread.run_sync(self._protection.end)
        return notes

    def _directory(self, cwd: str) -> str:
        """The directory as it is called beneath the root, links resolved."""
        fd = self._sandbox.open_directory(cwd)
        try:
            return _path_of(fd)
        finally:
            os.close(fd)

    def _program(self, name: str, confinement: Confinement) -> str:
        """The program by its path; what lies in the root is not taken by its mere name."""
        if "/" in name:
            return name
        unseen = ""
        for folder in self._folders():
            found = shutil.which(name, path=folder) if folder.startswith("/") else None
            if found and not is_beneath(os.path.realpath(found), self._root):
                if self._sees(found, confinement):
                    return found
                unseen = unseen or folder
        if unseen:
            raise UnavailableError(
                f"The program {name!r} lies in {unseen}, which programs cannot see.",
                next_actions=[f"Ask the user to add {unseen} to the setting system.readable."],
            )
        raise UnavailableError(
            f"The program {name!r} is not installed.",
            next_actions=[f"Install {name}, or do without it."],
        )

    def _seen_folders(self, confinement: Confinement) -> frozenset[str]:
        """The directories of programs that can be seen; looked for once, as they seldom change."""
        seen = self._seen.get(confinement.level)
        if seen is None:
            folders = self._folders()
            seen = frozenset(each for each in folders if self._sees(each, confinement))
            self._seen[confinement.level] = seen
        return seen

    def _folders(self) -> list[str]:
        """Where programs are looked for by name."""
        folders = self._environment.get("PATH", os.defpath).split(":")
        return [*folders, str(Path(sys.executable).parent)]

    def _sees(self, path: str, confinement: Confinement) -> bool:
        """Whether a program sees a path, and what it leads to."""
        if confinement.level is Level.NONE:
            return True
        return is_beneath(os.path.realpath(path), self._root) or self._reach.has(path)


def _make_scratch(parent: str) -> str:
    scratch = tempfile.mkdtemp(dir=parent)
    os.mkdir(os.path.join(scratch, "home"), 0o700)  # noqa: PTH102, PTH118  # texts, not paths
    return scratch


def _path_of(fd: int) -> str:
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  # not on Windows

        found = fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024))
        return os.fsdecode(found.rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115  # a text, not a path
