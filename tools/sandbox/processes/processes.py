"""Starts programs, confined as the settings require."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from tools.sandbox.processes.confinement.levels import Landlock, Levels, Probe, SandboxExec
from tools.sandbox.processes.confinement.network import Networks, Visit
from tools.sandbox.processes.confinement.plan import (
    Confinement,
    HeldPath,
    Plan,
    ProtectedPathFinder,
    ProtectedPaths,
    SearchPath,
    find_visible_paths,
    is_beneath,
)
from tools.sandbox.processes.explanations import BUSY, Explanations
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.launching.messages import EndReason
from tools.sandbox.processes.models import (
    Command,
    Level,
    Limits,
    Prepared,
    SandboxMode,
    SettingNames,
)
from tools.sandbox.processes.output import (
    KEPT_BYTES,
    Capture,
    Program,
    Transcript,
    communicate,
    shares,
)
from tools.sandbox.processes.protection.protection import Occupancy, Protection, WriteProtected
from tools.sandbox.processes.temporary import PrivateDirectory, PrivateHome
from tools.sandbox.secrets.secrets import Secrets

if TYPE_CHECKING:
    from tools.core.client import ProgressReporter
    from tools.policy.matching import DeniedPlace
    from tools.sandbox.web.guard import AddressGuard


REPORT_INTERVAL = 1.0  # interval of progress reports

_INHERITED = frozenset({"PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME"})

_WITHOUT_HOOKS = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": os.devnull,
}
"""Even renaming a branch runs a hook, reference-transaction, which an agent may have written."""


@dataclass(slots=True)
class Launch:
    """The start of one program, and what is left to clean up after it."""

    command: Command
    confinement: Confinement
    visit: Visit = field(default_factory=Visit)
    secrets: Mapping[str, str] = field(default_factory=dict)
    is_protected: bool = False  # whether a snapshot of the protected files was taken
    scratch: str = ""
    home: PrivateHome | None = None
    denied: DeniedPaths = field(default_factory=DeniedPaths)
    outside: tuple[HeldPath, ...] = ()  # closed once it has started


class Processes:
    """Starts programs in a root."""

    undoes = True  # whether changes of protected files are undone when a program ends

    def __init__(
        self,
        *,
        root: Path,
        protected: Sequence[Path],
        read_only: Sequence[Path],
        mode: SandboxMode,
        limits: Limits,
        environment: Mapping[str, str],  # from `inherited_variables`
        readable: Sequence[Path],
        network: Sequence[str],  # hosts that programs may reach, as in `AllowedHosts`
        sandbox: Sandbox,
        git_config: Callable[[], bytes],  # for private homes, on first use
        data_dir: Path,  # `quarantine` in it gets protected paths that programs create
        guard: Callable[[], AddressGuard],
        secrets: Secrets | None = None,
        denied: Callable[[], tuple[DeniedPlace, ...]] = tuple,
        ruled: Path | None = None,  # the root of the denied places, if it is another
        names: SettingNames | None = None,  # for errors
        launcher: Launcher | None = None,  # shared; closed with this
        most_networks: int = 0,  # of sessions at one time; 0 means the usual number
    ) -> None:
        names = names or SettingNames()
        self.secrets = secrets or Secrets()
        self._root = os.path.realpath(root)
        self._limits = limits
        self._environment = dict(environment)
        self._sandbox = sandbox
        self._visible = find_visible_paths(readable)
        self._protected = ProtectedPathFinder(self._root, self._visible, protected, read_only)
        self._quarantine = data_dir / "quarantine"
        self.protection = Protection(self._root, self._quarantine, sandbox.held)
        about = os.path.realpath(ruled or root)
        seen, is_own = (self._root, *self._visible.readable), is_beneath(about, self._root)
        self._denied = DeniedPathFinder(about, seen, denied, is_own=is_own)
        self._launcher = launcher or Launcher()
        self._networks = Networks(self._launcher, network, guard, names, most_networks)
        search_path = self._environment.get("PATH", os.defpath)
        self._search_path = SearchPath(search_path, self._root, self._visible)
        self.levels = Levels(
            [SandboxExec()]
            if sys.platform == "darwin"
            else [Bubblewrap(search_path, self._root, self._visible), Landlock()],
            Probe(self._launcher, self._visible, self._networks),
            self._protected,
            mode,
            names,
        )
        self._git_config = cache(git_config)
        self._scratches = PrivateDirectory()
        self._explanations = Explanations(
            self._root, self._visible, bool(network), limits, self._search_path.find_hidden, names
        )
        self._occupancy = Occupancy()
        self._programs: set[Program] = set()
        self._chosen: Confinement | None = None

    async def level(self) -> Level:
        """Returns the sandbox level, proved by a test run at the first call."""
        return (await self._confinement()).level

    async def is_confined(self) -> bool:
        """Returns whether all programs are confined."""
        try:
            return await self.level() is not Level.NONE
        except UnavailableError:
            return True

    async def is_offline(self) -> bool:
        """Returns whether all programs are confined, and reach no host."""
        return not self._networks.reach_hosts and await self.is_confined()

    async def denied(self) -> DeniedPaths:
        """Returns what rules deny to a program started now, and which rules are not enforced."""
        with suppress(UnavailableError):  # no program can be started then
            if self._denied.places():
                return await anyio.to_thread.run_sync(self._denied.find, await self.level())
        return DeniedPaths()

    async def start(self, command: Command) -> Program:
        """Starts a program, which is running on return."""
        confinement = await self._confinement()
        if command.writes:
            is_alone = await self._occupancy.enter(alone=command.repositories is not None)
            if not is_alone:  # a program that runs at the same time could write what is open to it
                command = replace(command, repositories=None)
        launch = Launch(command, confinement)
        try:
            launch.visit = await self._networks.visit(command.session, confinement)
            notes: tuple[str, ...] = ()
            if command.secrets:
                launch.secrets, notes = await self.secrets.variables(
                    command.secrets, confined=confinement.level is not Level.NONE
                )
            prepared = await anyio.to_thread.run_sync(self._prepare, launch)
            process = await self._launcher.start(prepared, stdin=command.channel)
        except BaseException:
            await self._finish(launch)
            raise
        finally:
            for each in launch.outside:
                os.close(each.descriptor)
        notes += launch.visit.notes
        program = Program(process, confinement.level, notes, partial(self._finish, launch))
        program.refused = launch.visit.refused
        program.closed = {**launch.denied.hidden, **launch.denied.read_only}
        self._programs = {each for each in self._programs if not each.has_ended} | {program}
        return program

    async def run(
        self, command: Command, *, seconds: float, report: ProgressReporter
    ) -> Transcript:
        """Runs a program to completion; kills it after some seconds.

        Leaves nothing of the program behind, even if cancelled.
        """
        out, err = Capture(KEPT_BYTES), Capture(KEPT_BYTES)
        running = await self.start(command)
        async with anyio.create_task_group() as group:
            group.start_soon(_report, report, lambda: out.size + err.size)
            sinks = [self.secrets.redaction.sink(each.feed) for each in (out, err)]
            completed = await communicate(running, *(each.feed for each in sinks), seconds=seconds)
            group.cancel_scope.cancel()
        for each in sinks:
            each.flush()
        out_share, err_share = shares(KEPT_BYTES, out.size, err.size)
        stdout, stderr = out.excerpt(out_share), err.excerpt(err_share)
        notes = list(running.notes)
        if not completed.timed_out:
            notes += self.explain(running, completed.exit_code, f"{stdout.text}\n{stderr.text}")
        return Transcript(
            stdout=stdout.text,
            stderr=stderr.text,
            exit_code=completed.exit_code,
            state="timed_out" if completed.timed_out else "exited",
            sandbox=running.level,
            truncated=bool(stdout.omitted or stderr.omitted),
            notes=notes,
        )

    def explain(self, program: Program, exit_code: int, output: str) -> tuple[str, ...]:
        """Returns why a finished program probably failed, apart from its notes."""
        if exit_code == 0 and not any(text in output for text in BUSY):
            return ()
        closed, notes = program.closed, program.notes
        return self._explanations.of(program.level, exit_code, output, notes, closed)

    async def aclose(self) -> None:
        """Ends all programs."""
        with anyio.CancelScope(shield=True):
            await self._launcher.aclose()
            for program in tuple(self._programs):
                await program.wait()
            await self._networks.aclose()
            await self.levels.aclose()
            await anyio.to_thread.run_sync(self._scratches.close)

    async def _confinement(self) -> Confinement:
        if self._chosen is None:
            self._chosen = await self.levels.choose()
        return self._chosen

    def _prepare(self, launch: Launch) -> Prepared:
        """Prepares everything for a program, and takes a snapshot; runs in threads."""
        command = launch.command
        write_protected = WriteProtected()
        if command.writes and self.undoes:
            write_protected = self._begin(command)
            launch.is_protected = True
            if command.watch is not None:
                command.watch.begin()
        launch.scratch = tempfile.mkdtemp(dir=self._scratches.path)
        launch.home = PrivateHome(self._scratches.path, self._git_config(), command.home)
        plan = self._plan(launch, launch.home.path, write_protected)
        if self._denied.is_own and self._denied.places():
            launch.denied = self._denied.find(launch.confinement.level)
            launch.denied.check(command.accepted)
            plan = launch.denied.taken_from(plan)
        return launch.confinement.prepare(plan)

    def _begin(self, command: Command) -> WriteProtected:
        work = command.repositories
        if work is None:
            return self.protection.begin()
        cwd = self._directory(command.cwd)
        removed = [os.path.normpath(Path(cwd, path)) for path in work.removes]
        return self.protection.begin(work, removed)

    def _plan(self, launch: Launch, home: str, write_protected: WriteProtected) -> Plan:
        command, confinement = launch.command, launch.confinement
        protected = ProtectedPaths()
        if confinement.level is not Level.NONE:
            protected = self._protected.find()
            confinement.check(protected)
        cwd = self._directory(command.cwd)
        # Files written in the root must not run with secrets, or with an open repository.
        is_outside = bool(launch.secrets) or command.repositories is not None
        environment = {
            "LANG": "C.UTF-8",
            **OPT_OUT,
            **self._environment,
            "PWD": cwd,
            "SHELL": "/bin/bash",
            "TERM": "dumb",
            "PATH": self._search_path.variable(confinement.level, outside=is_outside),
            "HOME": confinement.home(home),
            "TMPDIR": confinement.temporary(launch.scratch),
            **launch.visit.variables,
        }
        if command.repositories is not None and not command.repositories.leads_on:
            environment |= _WITHOUT_HOOKS
        return Plan(
            argv=(self._search_path.find(command.argv[0], confinement.level), *command.argv[1:]),
            cwd=cwd,
            environment={**environment, **command.environment, **launch.secrets},
            stdin=command.stdin,
            root=self._root,
            writes=command.writes,
            scratch=launch.scratch,
            home=home,
            visible=self._visible,
            protected=protected,
            write_protected=write_protected.paths,
            pinned=write_protected.pinned,
            namespaces=launch.visit.namespaces,
            held=self._sandbox.held.check(),
            limits=self._limits,
        )

    async def _finish(self, launch: Launch, reason: EndReason = EndReason.NONE) -> tuple[str, ...]:
        """Cleans up after a program that has ended or failed to start; returns notes."""
        notes = launch.visit.leave()
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
                notes += await anyio.to_thread.run_sync(self._clean_up, launch)
        finally:
            if launch.command.writes:
                self._occupancy.leave()
        return notes

    def _clean_up(self, launch: Launch) -> tuple[str, ...]:
        """Undoes changes to protected files, and removes what was made; runs in threads."""
        command = launch.command
        notes: tuple[str, ...] = ()
        if launch.is_protected:
            notes = self.protection.end()
            if launch.denied.places:
                notes += tuple(self._denied.undo(launch.denied, command.accepted, self._quarantine))
            notes += () if command.watch is None else command.watch.end()
        if launch.scratch:  # unless its supervisor has removed it
            shutil.rmtree(launch.scratch, ignore_errors=True)
        return notes if launch.home is None else notes + launch.home.remove()

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


def inherited_variables(environ: Mapping[str, str], names: Collection[str] = ()) -> dict[str, str]:
    """Returns the server's variables that processes inherit; never its own settings."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _INHERITED or name.startswith("LC_") or name in names)
        and not name.upper().startswith("TOOLCRIB")
    }


async def _report(report: ProgressReporter, size: Callable[[], int]) -> None:
    began = anyio.current_time()
    while True:
        await anyio.sleep(REPORT_INTERVAL)
        seconds = round(anyio.current_time() - began)
        await report(seconds, None, f"Running for {seconds} s, {size()} bytes of output")
