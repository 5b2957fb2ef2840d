"""Landlock and seccomp: rules about paths that a process puts on itself.

Landlock allows trees and cannot take a place out of one. Other processes' command lines stay
visible, as they are to every user of the machine.
"""

from __future__ import annotations

from dataclasses import replace

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import DEVICES, Confinement, Plan, ProtectedPaths
from tools.sandbox.processes.kernel.landlock import landlock_abi
from tools.sandbox.processes.models import LandlockRules, Level, Prepared


class Landlock(Confinement):
    """Confines by Landlock and seccomp."""

    level = Level.LANDLOCK
    shares_networks = True

    def describe(self) -> str:
        """Returns its version."""
        abi = landlock_abi()
        if not abi:
            raise UnavailableError(
                "This kernel has no Landlock, or it is switched off.",
                next_actions=["Use Linux 5.13 or later, with landlock in its parameter lsm."],
            )
        return f"Landlock ABI {abi}"

    def check(self, protected: ProtectedPaths) -> None:
        """Checks that there is nothing to keep processes from: its rules only allow."""
        for path in (*protected.hidden, *protected.read_only):
            raise UnavailableError(
                f"Landlock cannot keep programs from {path} within what they may use.",
                next_actions=[
                    "Ask the user to keep it outside the root, or to install bubblewrap."
                ],
            )

    def prepare(self, plan: Plan) -> Prepared:
        """Makes the rules of Landlock, under which the launcher starts the program."""
        own = (plan.scratch, *((plan.home,) if plan.home else ()), *DEVICES)
        writable = (plan.way_in, *own) if plan.writes else own
        readable = ("/proc", *plan.visible.readable, *(() if plan.writes else (plan.root,)))
        rules = LandlockRules(readable=readable, writable=writable)
        return replace(plan.prepared(), landlock=rules)
