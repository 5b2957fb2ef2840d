"""No confinement: programs run with limits, an ending and an environment of their own, no more."""

from __future__ import annotations

from tools.sandbox.processes.confinement.plan import Kept, Plan
from tools.sandbox.processes.models import Level, Prepared

__all__ = ["Unconfined"]


class Unconfined:
    """Confines nothing."""

    level = Level.NONE

    def describe(self) -> str:
        """That there is nothing to it."""
        return "no confinement"

    def close(self) -> None:
        """It has made nothing."""

    def temporary(self, scratch: str) -> str:
        """A process sees its private directory where it is."""
        return scratch

    def check(self, kept: Kept) -> None:
        """It keeps processes from no place, and does not say that it would."""

    def prepare(self, plan: Plan) -> Prepared:
        """Passes the plan on."""
        return plan.prepared()
