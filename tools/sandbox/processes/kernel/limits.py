"""What a process may use, set between fork and exec."""

from __future__ import annotations

import resource

__all__ = ["apply_limits"]


def apply_limits(cpu_seconds: int, memory_bytes: int, processes: int, file_bytes: int) -> None:
    """Limits this process and all that it starts; it cannot raise the limits again.

    The arguments are those of `models.Limits`; 0 sets no limit. No core is ever dumped.

    Raises:
        OSError: The system refuses.
    """
    _limit(resource.RLIMIT_CORE, 0)
    if cpu_seconds:
        # The first signal (SIGXCPU) says what happened; a second later SIGKILL cannot be caught.
        _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    if memory_bytes:
        _limit(resource.RLIMIT_AS, memory_bytes)
    threads = _threads_now() if processes else None
    if threads is not None:
        # The kernel counts all threads of the user, and root's not at all. Those of the whole
        # system are no fewer, and read at once.
        _limit(resource.RLIMIT_NPROC, processes + threads)
    if file_bytes:
        _limit(resource.RLIMIT_FSIZE, file_bytes)


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    most = resource.getrlimit(kind)[1]
    wanted = soft if hard is None else hard
    if most != resource.RLIM_INFINITY:
        soft, wanted = min(soft, most), min(wanted, most)
    resource.setrlimit(kind, (soft, wanted))


def _threads_now() -> int | None:
    """Threads of the whole system (`running/all` in /proc/loadavg), where that can be read."""
    try:
        with open("/proc/loadavg", "rb") as average:  # noqa: PTH123  # pathlib is slow to load
            return int(average.read().split()[3].partition(b"/")[2])
    except FileNotFoundError:  # not Linux
        return None
