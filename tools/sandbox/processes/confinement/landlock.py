"""Landlock and seccomp: path rules that a process applies to itself.

Landlock allows directory trees, and cannot exclude a path from one. Command lines of other
processes stay visible, as they are to every user of the machine.
"""

from __future__ import annotations

from dataclasses import replace

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import DEVICES, Confinement, Plan, ProtectedPaths
from tools.sandbox.processes.kernel.landlock import landlock_abi
from tools.sandbox.processes.models import LandlockRules, Level, Prepared


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
