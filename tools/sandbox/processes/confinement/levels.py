"""Chooses the confinement: the first that is proved to work."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import Confinement, Plan, ProtectedPathFinder
from tools.sandbox.processes.confinement.probe import Probe
from tools.sandbox.processes.models import Level, Prepared, SandboxMode

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class LevelFinding:
    """The result of testing a level.

    Attributes:
        detail: Its version, or the problem.
    """

    level: Level
    works: bool
    detail: str
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
    """Chooses a confinement; tests each once.

    Args:
        confinements: The confinements of this system, best first.
    """

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
        self._warn()
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

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            _logger.warning(
                "Programs run unconfined, because no confinement works: %s", self._reasons()
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
