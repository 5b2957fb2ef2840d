"""What is started, and under which confinement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tools.sandbox.secrets.secret import Secret


class Level(StrEnum):
    """What confines a process."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    SANDBOX_EXEC = "sandbox-exec"
    NONE = "none"


class SandboxMode(StrEnum):
    """What to do where no confinement works, as the settings have it."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a program may use; 0 sets no limit.

    Attributes:
        cpu_seconds: Seconds of processor time of each process.
        memory_bytes: Memory of the program and all that it starts together, on Linux.
        processes: Processes and threads of the program and all that it starts together, on Linux.
        file_bytes: Size of each file that it writes.
        descriptors: Descriptors that each process may have open.
    """

    cpu_seconds: int = 0
    memory_bytes: int = 0
    processes: int = 0
    file_bytes: int = 0
    descriptors: int = 0


class Watch(Protocol):
    """Sees what a program does to the files beneath the root; both of its methods block."""

    def begin(self) -> None:
        """Called before the program is started."""

    def end(self) -> tuple[str, ...]:
        """Called when it has ended, or could not be started; returns notes about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryWork:
    """What a command does to repositories, where it is known to run nothing that they could name.

    Attributes:
        configures: Whether git changes their settings in it, harmlessly.
        leads_on: Whether git runs what their hooks and settings name, so that none may.
        switches: Whether git replaces the files of one branch by those of another.
        removes: What it removes, relative to where it starts.
    """

    configures: bool = False
    leads_on: bool = False
    switches: bool = False
    removes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a tool runs.

    Attributes:
        argv: The program and its arguments.
        cwd: Where it starts: a directory relative to the root, resolved beneath it.
        environment: Variables beside those that every process gets.
        stdin: The content of its standard input.
        channel: A descriptor that is its standard input in place of that, for both ways if it is a
            socket; whoever starts it closes it.
        writes: Whether it may write beneath the root.
        session: Whose network it is in, with all programs of the same session: the user and the
            conversation. Empty for a network of its own, from which nothing is reached.
        watch: Sees what it does, where it may write; None where nobody does.
        secrets: What it is given besides; nothing outside has their values.
        repositories: What it does to repositories, for which it runs alone; None where it may run
            anything.
        home: Files that its private home has from the start, by their paths in it.
        accepted: Rules that a person let it run without, as nothing here enforces them.
    """

    argv: tuple[str, ...]
    cwd: str = "."
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    channel: int | None = None
    writes: bool = True
    session: tuple[str, ...] = ()
    watch: Watch | None = None
    secrets: tuple[Secret, ...] = ()
    repositories: RepositoryWork | None = None
    home: Mapping[str, bytes] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LandlockRules:
    """What a process may touch, with everything beneath it.

    Attributes:
        readable: Absolute paths that may be read and executed; those that are missing are skipped.
        writable: Absolute paths that may also be written.
    """

    readable: tuple[str, ...]
    writable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What the launcher starts, as a level made it of a command.

    Attributes:
        argv: The program by its absolute path, and its arguments.
        cwd: Absolute path of the directory that it starts in.
        environment: All of its variables.
        stdin: The content of its standard input.
        files: What it has open from descriptor 3 on: the content of files in memory.
        landlock: What it may touch, which also filters its system calls (seccomp); None for a
            program that is free, or that its own command line confines.
        limits: What it may use.
        scratch: A directory of its own that is removed when it has ended; empty for none.
        root: A directory that is open at the descriptor after those files until the program runs,
            or, where there are files, for the program to close; None for none.
        namespaces: Descriptors of namespaces that it joins, in this order; open until it runs.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    stdin: bytes = b""
    files: tuple[bytes, ...] = ()
    landlock: LandlockRules | None = None
    limits: Limits = Limits()
    scratch: str = ""
    root: int | None = None
    namespaces: tuple[int, ...] = ()
