"""One command as it will run, before a level of confinement makes it something to start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tools.sandbox.processes.confinement.reach import Reach
from tools.sandbox.processes.models import Level, Limits, Prepared

__all__ = ["Confinement", "Kept", "Plan"]


@dataclass(frozen=True, slots=True)
class Kept:
    """Places that processes are kept from, among all that they otherwise see.

    Attributes:
        hidden: Files and directories that they may neither read nor write.
        locked: Files and directories that they may not write.
        pinned: Directories of the root on the way there, which must not be moved.
    """

    hidden: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to run, and what it may touch; all paths are absolute.

    Attributes:
        argv: The program by its path, and its arguments.
        cwd: Where it starts.
        environment: All of its variables.
        stdin: What it can read from its standard input.
        root: The root.
        writes: Whether it may write beneath the root.
        scratch: Its private directory for temporary files.
        reach: What it sees beside.
        kept: What it is kept from at all times.
        closed: Places in the root that are closed to writes besides; a process may have replaced
            them by links since they were found.
        own: Directories that hold some of those, which must not be moved.
        proxy: Socket of the proxy that it reaches hosts through; empty for no network.
        limits: What it may use.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    stdin: bytes = b""
    root: str
    writes: bool = True
    scratch: str
    reach: Reach
    kept: Kept = field(default_factory=Kept)
    closed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    proxy: str = ""
    limits: Limits = field(default_factory=Limits)

    def prepared(self) -> Prepared:
        """What is to be started of it where nothing confines it."""
        return Prepared(
            argv=self.argv,
            cwd=self.cwd,
            environment=self.environment,
            stdin=self.stdin,
            limits=self.limits,
            scratch=self.scratch,
        )


class Confinement(Protocol):
    """A way to confine processes."""

    @property
    def level(self) -> Level:
        """Its name."""

    def describe(self) -> str:
        """What there is of it here: its version.

        Raises:
            UnavailableError: If it is not there; the message says what is missing, its actions
                what to do.
        """

    def close(self) -> None:
        """Removes what it has made."""

    def temporary(self, scratch: str) -> str:
        """Where a process sees its private directory."""

    def check(self, kept: Kept) -> None:
        """Sees whether it can keep processes from these places.

        Raises:
            UnavailableError: If it cannot.
        """

    def prepare(self, plan: Plan) -> Prepared:
        """Makes of a plan what the launcher starts."""
