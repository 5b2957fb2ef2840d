"""Rights, limits and namespaces of the current process, and its ties to its parent.

Zygotes load this module. Rights and ties exist on Linux only. `PR_SET_NO_NEW_PRIVS` applies to
every program, even unconfined ones: a program running as another user could not be killed. If the
server is root, a confined program keeps three capabilities, so that root can work on other users'
files inside the root as without confinement; Landlock limits where. It loses all others, which
would let it mount, load modules, open files by handle, trace and signal everything, or become
another user. CAP_FSETID is among those, so files get no set-user-ID or set-group-ID bits.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import struct
from collections.abc import Sequence
from contextlib import suppress

from tools.sandbox.processes.kernel.syscalls import NUMBERS, prctl, syscall

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_CHOWN, _DAC_OVERRIDE, _FOWNER = 1 << 0, 1 << 1, 1 << 3
_RETAINED = _CHOWN | _DAC_OVERRIDE | _FOWNER


def become_subreaper() -> None:
    """Makes this process the parent of every descendant that loses its own parent."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Makes the kernel kill this process when its parent ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def outlive_parent() -> None:
    """Undoes `die_with_parent`: only SIGCHLD then reports the parent's end."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGCHLD)


def run_first(*, first: bool) -> None:
    """Starts or stops running this process before all others, if permitted (CAP_SYS_NICE)."""
    policy, priority = (os.SCHED_FIFO, 1) if first else (os.SCHED_OTHER, 0)
    with suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(priority))


def forbid_new_privileges() -> None:
    """Prevents programs from gaining privileges on execution, by set-user-ID bits or otherwise."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def hide_memory() -> None:
    """Prevents the user's other processes from tracing this one, until it executes a program."""
    prctl(_PR_SET_DUMPABLE, 0)


def drop_capabilities() -> None:
    """Drops all capabilities (root keeps three), which other users get in a user namespace.

    Under no-new-privileges, executing a program does not restore them (capabilities(7)).
    """
    retained = _RETAINED if os.geteuid() == 0 else 0
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    # Twice 32 bits: effective, permitted and inheritable; the retained ones are below 32.
    data = struct.pack("=6I", retained, retained, 0, 0, 0, 0)
    number = _SYS_CAPSET.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    syscall(number, header, data)


def apply_limits(cpu_seconds: int, processes: int, file_bytes: int, descriptors: int) -> None:
    """Limits this process and each of its children, which cannot raise the limits again.

    The arguments are those of `models.Limits`; 0 means no limit. Core dumps are always disabled.
    """
    _limit(resource.RLIMIT_CORE, 0)
    if cpu_seconds:
        # The first signal (SIGXCPU) tells the cause; a second later comes SIGKILL, for good.
        _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    if processes:
        with suppress(FileNotFoundError):  # not Linux
            # The kernel counts all threads of the user, or none for root. The system's total is at
            # least as high, and quick to read.
            _limit(resource.RLIMIT_NPROC, processes + all_threads())
    if file_bytes:
        _limit(resource.RLIMIT_FSIZE, file_bytes)
    if descriptors:
        # Descriptors in transit are in no process's table: this limit covers them.
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        _limit(resource.RLIMIT_NOFILE, min(soft, descriptors), descriptors)


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    most = resource.getrlimit(kind)[1]
    wanted = soft if hard is None else hard
    if most != resource.RLIM_INFINITY:
        soft, wanted = min(soft, most), min(wanted, most)
    resource.setrlimit(kind, (soft, wanted))


def all_threads() -> int:
    """Returns the number of threads on the machine (`running/all`), which is quick to read."""
    with open("/proc/loadavg", "rb", buffering=0) as average:  # noqa: PTH123  # pathlib is slow to load
        return int(average.read().split()[3].partition(b"/")[2])


def join(namespaces: Sequence[int]) -> None:
    """Joins namespaces in order: a user namespace grants the right to join those in it."""
    for namespace in namespaces:
        # Python has os.setns() since 3.12.
        syscall(NUMBERS[os.uname().machine]["setns"], namespace, 0)
