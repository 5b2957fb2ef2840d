"""Chooses the confinement: the first that is proved to work. Defines all but bubblewrap.

Landlock allows directory trees, and cannot exclude a path from one. Under it, command lines of
other processes stay visible, as they are to every user of the machine. Apple does not document the
profile language of sandbox-exec; our profile uses only what the files in
`/System/Library/Sandbox/Profiles` use. Only its text is tested: no macOS was available to run it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import (
    DEVICES,
    Confinement,
    Plan,
    ProtectedPathFinder,
    ProtectedPaths,
)
from tools.sandbox.processes.confinement.probe import Probe
from tools.sandbox.processes.kernel.landlock import landlock_abi
from tools.sandbox.processes.models import LandlockRules, Level, Prepared, SandboxMode

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
    ) -> None:
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
            "No program was run: the setting system.sandbox is required, and no confinement works "
            f"here ({self._reasons()})",
            next_actions=[*advice, "Or ask the user to set system.sandbox to preferred."],
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
        writable = (plan.way_in, *own) if plan.writes else own
        readable = ("/proc", *plan.visible.readable, *(() if plan.writes else (plan.root,)))
        rules = LandlockRules(readable=readable, writable=writable)
        return replace(plan.prepared(), landlock=rules)


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
    for path in (*own, *((plan.root,) if plan.writes else ())):
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
