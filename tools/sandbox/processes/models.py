"""Data classes of commands, limits and confinement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tools.sandbox.secrets.secrets import Secret


class Level(StrEnum):
    """The confinement of a process."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    SANDBOX_EXEC = "sandbox-exec"
    NONE = "none"


class SandboxMode(StrEnum):
    """What the settings say to do if no confinement works."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of a program; 0 means none."""

    cpu_seconds: int = 0  # CPU time of each process
    memory_bytes: int = 0  # combined memory of the program and its descendants, on Linux
    # Combined processes and threads of the program and its descendants, on Linux.
    processes: int = 0
    file_bytes: int = 0
    descriptors: int = 0


@dataclass(frozen=True, slots=True)
class SettingNames:
    """The settings that allow more to a program, as its errors name them."""

    sandbox: str = "system.sandbox"
    network: str = "system.network"
    readable: str = "system.readable"
    writable: str = ""  # empty if no setting opens a path to writes
    # Settings that are lists, with their entries; errors then show the whole new list.
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def adding(self, setting: str, entry: str) -> str:
        """Returns what allows an entry, as the end of a sentence about the user."""
        if setting not in self.lists:
            return f"adds '{entry}' to {setting}"
        table, _, name = setting.rpartition(".")
        return f"writes {name} = {json.dumps([*self.lists[setting], entry])} in [{table}]"


class Watch(Protocol):
    """Observes a program's changes to files inside the root; its methods block."""

    def begin(self) -> None:
        """Runs before the program starts."""

    def end(self) -> tuple[str, ...]:
        """Runs after the program has ended, or failed to start; returns notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryWork:
    """The effect of a command on repositories, if it certainly runs no programs they name."""

    configures: bool = False  # whether git changes their settings, harmlessly
    # Whether git runs what their hooks and settings name, so that there may be none.
    leads_on: bool = False
    switches: bool = False  # whether git switches branches, replacing files
    removes: tuple[str, ...] = ()  # the paths it removes, relative to its working directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to run."""

    argv: tuple[str, ...]
    cwd: str = "."  # its working directory, relative to the root
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    # A descriptor to use as standard input instead, bidirectional if it is a socket; the caller
    # closes it.
    channel: int | None = None
    writes: bool = True
    # The session whose network it shares: the user and the conversation. Empty for a separate
    # network without any connection.
    session: tuple[str, ...] = ()
    watch: Watch | None = None
    secrets: tuple[Secret, ...] = ()  # the secrets it gets; nothing else has their values
    # Its effect on repositories, for which it must run alone; None if it may run anything.
    repositories: RepositoryWork | None = None
    home: Mapping[str, bytes] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()  # unenforceable rules that the user let it run without


@dataclass(frozen=True, slots=True, kw_only=True)
class LandlockRules:
    """The files a process may access, with everything below them."""

    # Absolute paths that may be read and executed; missing ones are skipped.
    readable: tuple[str, ...]
    writable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A start for the launcher, made from a command by a sandbox level."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    stdin: bytes = b""
    files: tuple[bytes, ...] = ()  # contents of in-memory files, open from descriptor 3 on
    # Its allowed paths; also enables the system call filter (seccomp). None if it is unconfined, or
    # its own command line confines it.
    landlock: LandlockRules | None = None
    limits: Limits = Limits()
    scratch: str = ""  # A private directory that is removed after its end; empty for none
    # A directory open at the descriptor after those files until the program runs, or, if there are
    # files, until the program closes it; None for none.
    root: int | None = None
    folders: tuple[int, ...] = ()  # paths outside the root, open after it and likewise
    # Descriptors of namespaces to join, in order; open until it runs.
    namespaces: tuple[int, ...] = ()
