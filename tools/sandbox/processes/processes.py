"""Starts programs, confined as the settings require."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from storage.outbound import OPT_OUT
from tools.core.errors import UnavailableError
from tools.sandbox.files.openat import path_of
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.confinement.bubblewrap import Bubblewrap
from tools.sandbox.processes.confinement.denied_paths import DeniedPathFinder, DeniedPaths
from tools.sandbox.processes.confinement.levels import Landlock, LevelFinding, Levels, SandboxExec
from tools.sandbox.processes.confinement.network import Networks, Visit
from tools.sandbox.processes.confinement.plan import (
    Confinement,
    Plan,
    ProtectedPathFinder,
    ProtectedPaths,
    SearchPath,
    find_visible_paths,
    is_beneath,
)
from tools.sandbox.processes.confinement.probe import Probe
from tools.sandbox.processes.explanations import Explanations
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.launching.messages import EndReason
from tools.sandbox.processes.launching.program import Program
from tools.sandbox.processes.models import Command, Level, Limits, Prepared, SandboxMode
from tools.sandbox.processes.occupancy import Occupancy
from tools.sandbox.processes.protection.protection import Protection, WriteProtected
from tools.sandbox.processes.temporary import PrivateDirectory, PrivateHome
from tools.sandbox.secrets.secrets import Secrets

if TYPE_CHECKING:
    from tools.policy.path_rules import DeniedPlace
    from tools.sandbox.web.guard import AddressGuard

_INHERITED = frozenset({"PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME"})

_WITHOUT_HOOKS = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": os.devnull,
}
"""Even renaming a branch runs a hook, reference-transaction, which an agent may have written."""


class Processes:
    """Starts programs in a root.

    Args:
        environment: Inherited variables of the server, from `inherited_variables`.
        network: Hosts that programs may reach, as in `AllowedHosts`.
        git_config: Returns the git settings for private homes, on first use.
        data_dir: Its `quarantine` receives write-protected paths that programs create.
        ruled: The root of those rules, if it is not the programs' own root.
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
        git_config: Callable[[], bytes],
        data_dir: Path,
        guard: Callable[[], AddressGuard],
        secrets: Secrets | None = None,
        denied: Callable[[], tuple[DeniedPlace, ...]] = tuple,
        ruled: Path | None = None,
    ) -> None:
        self.secrets = secrets or Secrets()
        self._root = os.path.realpath(root)
        self._limits = limits
        self._environment = dict(environment)
        self._sandbox = sandbox
        self._visible = find_visible_paths(readable)
        self._protected = ProtectedPathFinder(self._root, self._visible, protected, read_only)
        self._quarantine = data_dir / "quarantine"
        self._protection = Protection(self._root, self._quarantine, sandbox.held)
        about = os.path.realpath(ruled or root)
        seen, is_own = (self._root, *self._visible.readable), is_beneath(about, self._root)
        self._denied = DeniedPathFinder(about, seen, denied, is_own=is_own)
        self._launcher = Launcher()
        self._networks = Networks(self._launcher, network, guard)
        search_path = self._environment.get("PATH", os.defpath)
        self._search_path = SearchPath(search_path, self._root, self._visible)
        self._levels = Levels(
            [SandboxExec()]
            if sys.platform == "darwin"
            else [Bubblewrap(search_path, self._root, self._visible), Landlock()],
            Probe(self._launcher, self._visible, self._networks),
            self._protected,
            mode,
        )
        self._git_config = cache(git_config)
        self._scratches = PrivateDirectory()
        self._explanations = Explanations(
            self._root, self._visible, bool(network), limits, self._search_path.find_hidden
        )
        self._occupancy = Occupancy()
        self._programs: set[Program] = set()

    async def level(self) -> Level:
        """Returns the sandbox level, proved by a test run at the first call."""
        return (await self._levels.choose()).level

    async def is_confined(self) -> bool:
        """Returns whether all programs are confined."""
        try:
            return await self.level() is not Level.NONE
        except UnavailableError:
            return True

    async def is_offline(self) -> bool:
        """Returns whether all programs are confined, and reach no host."""
        return not self._networks.reach_hosts and await self.is_confined()

    async def findings(self) -> list[LevelFinding]:
        """Returns the test results of all levels, best first."""
        return await self._levels.findings()

    async def denied(self) -> DeniedPaths:
        """Returns what rules deny to a program started now, and which rules are not enforced."""
        with suppress(UnavailableError):  # no program can be started then
            if self._denied.places():
                return await anyio.to_thread.run_sync(self._denied.find, await self.level())
        return DeniedPaths()

    async def start(self, command: Command) -> Program:
        """Starts a program, which is running on return."""
        confinement = await self._levels.choose()
        if not command.writes:
            return await self._start(command, confinement)
        is_alone = await self._occupancy.enter(alone=command.repositories is not None)
        try:
            # A program that runs at the same time could write what is open to it.
            work = command.repositories if is_alone else None
            return await self._start(replace(command, repositories=work), confinement)
        except BaseException:
            self._occupancy.leave()
            raise

    async def _start(self, command: Command, confinement: Confinement) -> Program:
        visit = await self._networks.visit(command.session, confinement)
        with ExitStack() as abandoned:
            abandoned.callback(visit.leave)
            values, given = await self.secrets.variables(
                command.secrets, confined=confinement.level is not Level.NONE
            )
            prepared, home, denied = await anyio.to_thread.run_sync(
                self._prepare, command, confinement, visit, values
            )
            try:
                process = await self._launcher.start(prepared, stdin=command.channel)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._abandon, command, prepared.scratch, home)
                raise
            abandoned.pop_all()
        finish = partial(self._finish, command, home, visit, denied)
        program = Program(process, confinement.level, given + visit.notes, finish)
        program.closed = {**denied.hidden, **denied.read_only}
        self._programs = {each for each in self._programs if not each.has_ended} | {program}
        return program

    def explain(self, program: Program, exit_code: int, output: str) -> tuple[str, ...]:
        """Returns why a finished program probably failed, apart from its notes.

        `exit_code`: as a shell reports it.
        `output`: the end of its output.
        """
        closed, notes = program.closed, program.notes
        return self._explanations.of(program.level, exit_code, output, notes, closed)

    def accepting(self, path: str, content: bytes) -> AbstractContextManager[None]:
        """Returns a context in which a write-protected file is written with the user's approval."""
        return self._protection.accepting(path, content)

    async def aclose(self) -> None:
        """Ends all programs."""
        with anyio.CancelScope(shield=True):
            await self._launcher.aclose()
            for program in tuple(self._programs):
                await program.wait()
            await self._networks.aclose()
            await self._levels.aclose()
            await anyio.to_thread.run_sync(self._scratches.close)

    def _prepare(
        self,
        command: Command,
        confinement: Confinement,
        visit: Visit,
        secrets: Mapping[str, str],
    ) -> tuple[Prepared, PrivateHome, DeniedPaths]:
        """Prepares everything for a program, and takes a snapshot; runs in threads."""
        with ExitStack() as undoing:
            write_protected = WriteProtected()
            if command.writes:
                write_protected = self._begin(command)
                undoing.callback(self._after_end, command)
                if command.watch is not None:
                    command.watch.begin()
            scratch = tempfile.mkdtemp(dir=self._scratches.path)
            undoing.callback(shutil.rmtree, scratch, ignore_errors=True)
            home = PrivateHome(self._scratches.path, self._git_config(), command.home)
            undoing.callback(home.remove)
            own = {"scratch": scratch, "home": home.path}
            plan = self._plan(command, confinement, write_protected, secrets, **own, visit=visit)
            denied = DeniedPaths()
            if self._denied.is_own and self._denied.places():
                denied = self._denied.find(confinement.level)
                denied.check(command.accepted)
                plan = denied.taken_from(plan)
            prepared = confinement.prepare(plan)
            undoing.pop_all()
        return prepared, home, denied

    def _begin(self, command: Command) -> WriteProtected:
        work = command.repositories
        if work is None:
            return self._protection.begin()
        cwd = self._directory(command.cwd)
        removed = [os.path.normpath(Path(cwd, path)) for path in work.removes]
        return self._protection.begin(work, removed)

    def _abandon(self, command: Command, scratch: str, home: PrivateHome) -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        self._clean_up(command, home, None)

    def _after_end(self, command: Command, denied: DeniedPaths | None = None) -> tuple[str, ...]:
        """Undoes changes to protected files, then reports the others; runs in threads."""
        notes = self._protection.end()
        if denied is not None and self._denied.places():
            notes += tuple(self._denied.undo(denied, command.accepted, self._quarantine))
        return notes if command.watch is None else (*notes, *command.watch.end())

    def _plan(
        self,
        command: Command,
        confinement: Confinement,
        write_protected: WriteProtected,
        secrets: Mapping[str, str],
        *,
        scratch: str,
        home: str,
        visit: Visit,
    ) -> Plan:
        protected = ProtectedPaths()
        if confinement.level is not Level.NONE:
            protected = self._protected.find()
            confinement.check(protected)
        cwd = self._directory(command.cwd)
        own = {
            **self._variables(cwd),
            "PATH": self._search_path.variable(
                confinement.level, outside=bool(secrets) or command.repositories is not None
            ),
            "HOME": confinement.home(home),
            "TMPDIR": confinement.temporary(scratch),
            **visit.variables,
        }
        if command.repositories is not None and not command.repositories.leads_on:
            own |= _WITHOUT_HOOKS
        return Plan(
            argv=(self._search_path.find(command.argv[0], confinement.level), *command.argv[1:]),
            cwd=cwd,
            environment={**own, **command.environment, **secrets},
            stdin=command.stdin,
            root=self._root,
            writes=command.writes,
            scratch=scratch,
            home=home,
            visible=self._visible,
            protected=protected,
            write_protected=write_protected.paths,
            pinned=write_protected.pinned,
            namespaces=visit.namespaces,
            held=self._sandbox.held.check(),
            limits=self._limits,
        )

    async def _finish(
        self,
        command: Command,
        home: PrivateHome,
        visit: Visit,
        denied: DeniedPaths,
        reason: EndReason,
    ) -> tuple[str, ...]:
        notes = visit.leave()
        megabytes = self._limits.memory_bytes // 1_000_000
        threads = f"{self._limits.processes} processes and threads"
        most = {
            EndReason.MEMORY: f"{megabytes} MB of memory (system.memory_mb)",
            EndReason.PROCESSES: f"{threads} (system.processes)",
        }
        if reason in most:
            notes += (f"Killed: it and its child processes used more than {most[reason]}.",)
        elif reason is EndReason.MACHINE_MEMORY:
            notes += ("Killed: the machine had almost no memory left.",)
        try:
            with anyio.CancelScope(shield=True):
                notes += await anyio.to_thread.run_sync(self._clean_up, command, home, denied)
        finally:
            if command.writes:
                self._occupancy.leave()
        return notes

    def _clean_up(
        self, command: Command, home: PrivateHome, denied: DeniedPaths | None
    ) -> tuple[str, ...]:
        """Cleans up after a program; returns the notes of its result."""
        return (self._after_end(command, denied) if command.writes else ()) + home.remove()

    def _directory(self, cwd: str) -> str:
        """Returns the real path of a directory inside the root."""
        fd = self._sandbox.open_directory(cwd)
        try:
            path = path_of(fd)
        finally:
            os.close(fd)
        if not is_beneath(path, self._root):
            raise UnavailableError(
                f"The root {self._root!r} was moved while a program was started.",
                next_actions=["Ask the user to put it back, or to restart the server."],
            )
        return path

    def _variables(self, cwd: str) -> dict[str, str]:
        """Returns the variables that are the same at all levels."""
        return {
            "LANG": "C.UTF-8",
            **OPT_OUT,
            **self._environment,
            "PWD": cwd,
            "SHELL": "/bin/bash",
            "TERM": "dumb",
        }


def inherited_variables(environ: Mapping[str, str], names: Collection[str] = ()) -> dict[str, str]:
    """Returns the server's variables that processes inherit; never its own settings."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _INHERITED or name.startswith("LC_") or name in names)
        and not name.upper().startswith("TOOLCRIB")
    }
