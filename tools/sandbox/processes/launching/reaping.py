"""Ends all descendants of this process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection
from contextlib import suppress

_SIGNALLED = 128
"""Added by shells to the number of the signal that ended a process."""

Ended = Callable[[int, int], object]
"""Called with the process ID and status (waitpid(2)) of each child that has ended."""


def end_descendants(ended: Ended, *, scoped: bool) -> None:
    """Kills every descendant, and returns when none is left.

    The caller is a child subreaper (prctl(2)): orphans become its children.

    `scoped`: whether signals of this process reach only its descendants, as in its own Landlock
    domain: then the kernel kills them all at once, and none can start another.
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
    """Kills every child except some, and those that thereby become children.

    A child keeps its process ID until it is waited for, so no other process is hit. As long as a
    descendant lives there is a child, so none is missed.
    """
    while doomed := [pid for pid in children() if pid not in keep]:
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        for pid in doomed:
            ended(*os.waitpid(pid, 0))


def end_group(leader: int) -> None:
    """Kills a process group: all that can be found without a subreaper, as on macOS.

    Misses programs that leave the group with setsid(2).

    Args:
        leader: The process that created the group; a child that has not been waited for.
    """
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses if only zombies are left
        os.killpg(leader, signal.SIGKILL)


def reap(ended: Ended) -> None:
    """Waits for every child that has already ended."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            ended(pid, status)


def exit_code(status: int) -> int:
    """Converts a status of waitpid(2) as shells do: for a signal, 128 plus its number."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def children() -> list[int]:
    """Returns the process IDs of this process's children, including zombies."""
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
            # The name, in parentheses, may contain anything; the state and the parent follow it.
            return int(status.read().rpartition(b")")[2].split()[1]) == os.getpid()
    except OSError:  # ended meanwhile
        return False
