"""Which confinement is used: the first of an order that is proved to work."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import Confinement
from tools.sandbox.processes.confinement.probe import Probe
from tools.sandbox.processes.confinement.unconfined import Unconfined
from tools.sandbox.processes.models import Level, SandboxMode
from tools.sandbox.processes.protection.kept import Keeper

__all__ = ["LevelFinding", "Levels"]

_logger = logging.getLogger("toolcrib")

_CHEAPEST_FIRST = (Level.LANDLOCK, Level.BUBBLEWRAP, Level.SANDBOX_EXEC)


@dataclass(frozen=True, slots=True)
class LevelFinding:
    """What was found out about one level.

    Attributes:
        level: The level.
        works: Whether it is proved to work.
        detail: Its version, or what is wrong.
        advice: What to do about that, one sentence each.
    """

    level: Level
    works: bool
    detail: str
    advice: tuple[str, ...] = ()


class Levels:
    """Chooses a confinement, each tried once.

    Args:
        confinements: All that there are, the best first.
        probe: Proves that one works.
        keeper: What programs have to be kept from.
        mode: What is wanted where none works.
    """

    def __init__(
        self,
        confinements: Sequence[Confinement],
        probe: Probe,
        keeper: Keeper,
        mode: SandboxMode,
    ) -> None:
        self._confinements = {each.level: each for each in confinements}
        self._probe = probe
        self._keeper = keeper
        self._mode = mode
        self._lock = anyio.Lock()
        self._found: dict[Level, LevelFinding] = {}
        self._warned = False

    async def choose(self, *, fast: bool = False) -> Confinement:
        """The confinement of a program.

        Args:
            fast: Whether the cheapest that holds is enough.

        Raises:
            UnavailableError: If none works, and one is required.
        """
        if self._mode is SandboxMode.OFF:
            return Unconfined()
        order = [level for level in _CHEAPEST_FIRST if level in self._confinements]
        for level in order if fast else self._confinements:
            if (await self._finding(level)).works:
                return self._confinements[level]
        if self._mode is SandboxMode.REQUIRED:
            raise self._refusal()
        self._warn()
        return Unconfined()

    async def findings(self) -> list[LevelFinding]:
        """What is found out about every level, the best first."""
        return [await self._finding(level) for level in self._confinements]

    async def aclose(self) -> None:
        """Removes what the confinements have made."""
        for confinement in self._confinements.values():
            await anyio.to_thread.run_sync(confinement.close)

    async def _finding(self, level: Level) -> LevelFinding:
        async with self._lock:
            if level not in self._found:
                self._found[level] = await self._try(self._confinements[level])
            return self._found[level]

    async def _try(self, confinement: Confinement) -> LevelFinding:
        try:
            detail = await anyio.to_thread.run_sync(confinement.describe)
            confinement.check(await anyio.to_thread.run_sync(self._keeper.find))
            await self._probe.run(confinement)
        except UnavailableError as error:
            return LevelFinding(confinement.level, False, error.message, error.next_actions)  # noqa: FBT003  # a field of the row
        except Exception as error:  # noqa: BLE001  # whatever it is, the level does not work
            return LevelFinding(confinement.level, False, f"{type(error).__name__}: {error}")  # noqa: FBT003  # the same
        return LevelFinding(confinement.level, True, detail)  # noqa: FBT003  # the same

    def _refusal(self) -> UnavailableError:
        reasons = "; ".join(f"{each.level}: {each.detail}" for each in self._found.values())
        advice = [action for each in self._found.values() for action in each.advice]
        return UnavailableError(
            "No program was run: the setting system.sandbox is required, and no confinement works "
            f"here ({reasons})",
            next_actions=[*advice, "Or ask the user to set system.sandbox to preferred."],
        )

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            reasons = "; ".join(f"{each.level}: {each.detail}" for each in self._found.values())
            _logger.warning("Programs run unconfined, because no confinement works: %s", reasons)
