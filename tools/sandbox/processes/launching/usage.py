"""Measures what a program and its descendants use, from /proc, in its supervisor.

A limit on address space (RLIMIT_AS) applies to each process separately and counts mere
reservations: too strict for some, useless against many processes. The kernel's limit on processes
(RLIMIT_NPROC) does not apply to root. Control groups would count as we do, but few servers may
create them.

Kernel memory behind descriptors counts too. Sockets are counted by network namespace, which
includes sockets in no descriptor table, such as those in transit in a message.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

from tools.sandbox.processes.kernel.process import all_threads
from tools.sandbox.processes.launching.messages import EndReason

_SECONDS = 0.1  # interval of measurements; a process fills at most two gigabytes a second

_LONGEST_SECONDS = 1.0
_GLANCE_SECONDS = 0.01
"""Interval of checks of the number of all threads, if the kernel does not limit root's."""

_SHARE = 20  # ratio of the pause after a measurement to its duration
_RESERVE = 32  # share of the machine's memory that must stay available, as a divisor

_PIPE_BYTES = 10_240
"""Capacity of a pipe once its user has 64 MB of them (pipe(7)); other descriptors hold less."""

_LARGEST_SOCKET = 1 << 26  # capacity of an internet socket under the kernel's defaults (tcp(7))

_IN_MEMORY = ("/memfd:", "socket:")
"""Descriptors of files in memory, and of sockets that can carry them."""

_SHARED_MAPPINGS = (b"/memfd:", b"/dev/zero (deleted)", b"/SYSV")

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Memory limits of a container, seen from inside: for control groups 2 and 1."""


class UsageWatch:
    """Watches the resource usage of this process's descendants."""

    def __init__(self, memory: int, processes: int, *, scoped: bool) -> None:
        self._memory = memory
        self._processes = processes
        self._reserve = _of_system(b"MemTotal:") // _RESERVE
        self._shared = _of_system(b"Shmem:")
        self._sockets, self._buffers = _sockets("self")
        one, other = socket.socketpair()
        with one, other:
            # The kernel lets a sender's last message exceed its buffer.
            self._socket_bytes = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) * 4 // 3
        self._scoped = scoped  # signals of this process reach only its descendants
        self._glances = processes > 0 and os.geteuid() == 0
        self._threads = all_threads()
        self._due = time.monotonic() + _SECONDS
        self._glance_due = 0.0 if self._glances else self._due

    def seconds_left(self) -> float:
        """Returns the time until the next measurement."""
        return max(0.0, min(self._due, self._glance_due) - time.monotonic())

    def check(self) -> EndReason:
        """Measures if due; returns why they must be killed, if so."""
        began = time.monotonic()
        if began < min(self._due, self._glance_due):
            return EndReason.NONE
        is_bomb = self._glances and all_threads() - self._threads > self._processes // 2
        if began < self._due and not is_bomb:
            self._glance_due = began + _GLANCE_SECONDS
            return EndReason.NONE
        stops = is_bomb and self._scoped
        if stops:  # else they could multiply while being counted
            _signal_all(signal.SIGSTOP)
        found = self._measure()
        if stops and not found:
            _signal_all(signal.SIGCONT)
        self._threads = all_threads()
        ended = time.monotonic()
        self._due = ended + min(max(_SECONDS, _SHARE * (ended - began)), _LONGEST_SECONDS)
        self._glance_due = ended + _GLANCE_SECONDS if self._glances else self._due
        return found

    def _measure(self) -> EndReason:
        pids, threads = [], 0
        for pid, count in _descendants(os.getpid()):
            pids.append(pid)
            threads += count
            if self._processes and threads > self._processes:
                return EndReason.PROCESSES
        if not self._memory:
            return EndReason.NONE
        shared = max(0, _of_system(b"Shmem:") - self._shared)
        fixed = self._of_sockets(pids)
        rough = fixed + shared + sum(map(_own, pids)) + _PIPE_BYTES * sum(map(_open_files, pids))
        if rough > self._memory and fixed + _exact(pids, shared) > self._memory:
            return EndReason.MEMORY
        # Files in memory that no process maps are charged to none.
        is_scarce = _of_system(b"MemAvailable:") < self._reserve
        return EndReason.MACHINE_MEMORY if is_scarce else EndReason.NONE

    def _of_sockets(self, pids: Sequence[int]) -> int:
        """Returns the capacity in bytes of all sockets in the descendants' network."""
        for pid in reversed(pids):  # the first may be creating the network of the others
            with suppress(OSError):  # ended meanwhile
                count, buffers = _sockets(str(pid))
                count -= self._sockets if _shares_our_network(pid) else 0
                grown = min(buffers - self._buffers, count * _LARGEST_SOCKET)
                return max(0, count) * self._socket_bytes + max(0, grown)
        return 0


def machine_memory() -> int:
    """Returns the memory in bytes of the machine or the container; 0 if unknown."""
    try:
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, OSError, ValueError):
        return 0
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # "max" is not a number
            found.append(int(_read(path)))
    return min(found)


def _descendants(pid: int) -> Iterator[tuple[int, int]]:
    pending = [pid]
    while pending:
        each = pending.pop()
        with suppress(OSError):  # ended meanwhile
            threads = os.listdir(f"/proc/{each}/task")  # noqa: PTH208  # pathlib is slow to load
            if each != pid:
                yield each, len(threads)
            for thread in threads:
                pending += map(int, _read(f"/proc/{each}/task/{thread}/children").split())


def _own(pid: int) -> int:
    """Returns the memory of a process; pages shared since fork() count in full."""
    with suppress(OSError):  # ended meanwhile
        return _sum(f"/proc/{pid}/status", b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:")
    return 0


def _exact(pids: Iterable[int], shared: int) -> int:
    """Returns the memory of processes, counting shared pages once; this takes longer.

    `shared`: growth of the machine's shared memory. It is charged to them if they use any, as
    unmapped shared memory is listed nowhere.
    """
    total = mapped = 0
    pipes: set[str] = set()
    has_shared = False
    for pid in pids:
        try:
            rollup = f"/proc/{pid}/smaps_rollup"
            own = _sum(rollup, b"Pss_Anon:", b"SwapPss:") + _sum(f"/proc/{pid}/status", b"VmPTE:")
            mapped += _sum(rollup, b"Pss_Shmem:")
            maps = _read(f"/proc/{pid}/maps")
            has_shared |= any(each in maps for each in _SHARED_MAPPINGS)
            for link in _links(pid):
                has_shared |= link.startswith(_IN_MEMORY)
                # For others, the kernel does not tell which are the same.
                pipes.add(link if link.startswith("pipe:") else "")
            total += own
        except OSError:  # it has ended, or cannot be inspected
            total += _own(pid) + _PIPE_BYTES * _open_files(pid)
    return total + max(mapped, shared if has_shared else 0) + _PIPE_BYTES * len(pipes)


def _links(pid: int) -> Iterator[str]:
    for entry in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208  # pathlib is slow to load
        with suppress(OSError):  # closed meanwhile
            yield os.readlink(f"/proc/{pid}/fd/{entry}")  # noqa: PTH115  # pathlib is slow to load


def _open_files(pid: int) -> int:
    """Returns the number of a process's descriptors, or on older kernels their capacity."""
    with suppress(OSError):  # ended meanwhile
        if count := os.stat(f"/proc/{pid}/fd").st_size:  # noqa: PTH116  # pathlib is slow to load
            return count
        return _sum(f"/proc/{pid}/status", b"FDSize:") // 1024
    return 0


def _sockets(process: str) -> tuple[int, int]:
    """Returns the number of sockets in a process's network, and the bytes of its buffers."""
    words = _read(f"/proc/{process}/net/sockstat").split()
    pages = sum(int(each) for name, each in pairwise(words) if name == b"mem")
    return int(words[2]), pages * os.sysconf("SC_PAGE_SIZE")


def _shares_our_network(pid: int) -> bool:
    with suppress(OSError):  # it cannot be inspected, so it is in our namespaces
        return os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116  # pathlib is slow to load
    return True


def _signal_all(number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(-1, number)


def _of_system(name: bytes) -> int:
    return _sum("/proc/meminfo", name)


def _sum(path: str, *names: bytes) -> int:
    """Adds up lines such as `RssAnon:  1024 kB`."""
    lines = (line.split() for line in _read(path).splitlines() if line.startswith(names))
    return sum(1024 * int(line[1]) for line in lines)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # pathlib is slow to load
        return file.read()
