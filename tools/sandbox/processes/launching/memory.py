"""The memory of a program and all that it has started, measured in /proc by its supervisor.

A limit of address space (RLIMIT_AS) holds for each process alone and counts what is only reserved:
too much for some, nothing for many. Control groups would count as we do, but few servers may make
them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from tools.sandbox.processes.launching.messages import EndReason

__all__ = ["MemoryWatch", "machine_memory"]

_SECONDS = 0.1
"""Between two measurements; a process fills two gigabytes a second at most."""

_SHARE = 20
"""How much longer than a measurement the pause after it is."""

_RESERVE = 32
"""The part of the machine's memory that must stay available, as a divisor."""

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""The limit of a container, as it sees it itself: of control groups 2, and of 1."""


class MemoryWatch:
    """Watches the memory of the descendants of this process.

    Args:
        limit: Bytes that they may use together.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._reserve = _of_system(b"MemTotal:") // _RESERVE
        self._due = time.monotonic() + _SECONDS

    def seconds_left(self) -> float:
        """Returns how long it is until the next measurement."""
        return max(0.0, self._due - time.monotonic())

    def check(self) -> EndReason:
        """Measures if it is time; returns why they have to be ended, if they have to."""
        began = time.monotonic()
        if began < self._due:
            return EndReason.NONE
        found = self._measure()
        ended = time.monotonic()
        self._due = ended + max(_SECONDS, _SHARE * (ended - began))
        return found

    def _measure(self) -> EndReason:
        pids = list(_descendants(os.getpid()))
        if sum(map(_own, pids)) > self._limit and sum(map(_proportional, pids)) > self._limit:
            return EndReason.MEMORY
        # Files in memory that no process maps are counted for none.
        is_scarce = _of_system(b"MemAvailable:") < self._reserve
        return EndReason.MACHINE_MEMORY if is_scarce else EndReason.NONE


def machine_memory() -> int:
    """Returns the bytes of memory of the machine, or of the container; 0 if it cannot be told."""
    try:
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, OSError, ValueError):
        return 0
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # "max" is no number
            found.append(int(_read(path)))
    return min(found)


def _descendants(pid: int) -> Iterator[int]:
    pending = [str(pid)]
    while pending:
        each = pending.pop()
        with suppress(OSError):  # ended meanwhile
            for thread in os.listdir(f"/proc/{each}/task"):  # noqa: PTH208  # pathlib is slow to load
                children = _read(f"/proc/{each}/task/{thread}/children").split()
                yield from map(int, children)
                pending += map(os.fsdecode, children)


def _own(pid: int) -> int:
    """Returns the bytes of a process; what it shares since fork() counts in full."""
    with suppress(OSError):  # ended meanwhile
        return _sum(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:"))
    return 0


def _proportional(pid: int) -> int:
    """Returns the bytes of a process, with its part of what it shares; this takes longer."""
    with suppress(OSError):  # it forbids being looked at
        return _sum(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    return _own(pid)


def _of_system(name: bytes) -> int:
    return _sum("/proc/meminfo", (name,))


def _sum(path: str, names: tuple[bytes, ...]) -> int:
    """Adds up lines such as `RssAnon:  1024 kB`."""
    lines = (line.split() for line in _read(path).splitlines() if line.startswith(names))
    return sum(1024 * int(line[1]) for line in lines)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # pathlib is slow to load
        return file.read()
