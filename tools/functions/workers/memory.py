"""Limits the memory of a worker's process."""

from __future__ import annotations

import resource


def limit_memory(most: int) -> None:
    """Makes allocations fail here before the system runs out of memory; 0 sets no limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if most and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
