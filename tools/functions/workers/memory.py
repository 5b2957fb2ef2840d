"""The memory that a worker's process may have."""

from __future__ import annotations

import resource


def limit_memory(most: int) -> None:
    """Lets an allocation fail here before the machine runs out of memory; 0 sets no limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if most and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
