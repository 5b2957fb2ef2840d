"""The end of all processes that descend from this one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection
from contextlib import suppress

_SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a process."""

Ended = Callable[[int, int], object]
"""Called with the process id and the status (waitpid(2)) of each child that has ended."""


def end_descendants(ended: Ended, *, scoped: bool) -> None:
    """Ends every descendant, and returns when none is left.

    The caller is a child subreaper (prctl(2)): whoever loses its parent becomes its child.

    Args:
        ended: Called for each.
        scoped: Whether signals of this process reach its descendants only, as in a Landlock domain
            of its own: then the kernel ends them all at once, and none can start another.
    """
    if not scoped:
        end_children(ended)
        return
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            ended(*os.waitpid(-1, 0))


def end_children(ended: Ended, *, keep: Collection[int] = ()) -> None:
    """Ends every child but some, and those that become children by that.

    A child keeps its process id until it is waited for, so no other process is hit; and as long as
    one descendant lives there is a child, so none is missed.
    """
    while doomed := [pid for pid in children() if pid not in keep]:
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        for pid in doomed:
            ended(*os.waitpid(pid, 0))


def end_group(leader: int) -> None:
    """Ends a process group: all that can be found without a subreaper, as on macOS.

    A program that leaves the group with setsid(2) is missed.

    Args:
        leader: The process that made the group; a child that has not been waited for.
    """
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses where only zombies are
        os.killpg(leader, signal.SIGKILL)


def reap(ended: Ended) -> None:
    """Waits for every child that has ended already."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            ended(pid, status)


def exit_code(status: int) -> int:
    """Returns a status of waitpid(2) as a shell has it: 128 and the signal's number for signals."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def children() -> list[int]:
    """Returns the process ids of this process's children, ended ones included."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as listed:  # noqa: PTH123  # pathlib is slow to load
            return [int(pid) for pid in listed.read().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [int(entry) for entry in os.listdir("/proc") if _is_child(entry)]  # noqa: PTH208  # pathlib is slow to load


def _is_child(entry: str) -> bool:
    if not entry.isdigit():
        return False
    try:
        with open(f"/proc/{entry}/stat", "rb") as status:  # noqa: PTH123  # pathlib is slow to load
            # The name, in brackets, may contain anything; the state and the parent come after it.
            return int(status.read().rpartition(b")")[2].split()[1]) == os.getpid()
    except OSError:  # ended meanwhile
        return False
