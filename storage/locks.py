"""Locks between processes, which the system frees when their holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Holds the lock on a file, made where it is missing, for the length of the block.

    Args:
        path: The file.
        wait: Whether to wait for whoever holds it, or to do without.

    Yields:
        Whether it is held.

    Raises:
        OSError: If the file cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        held = False
    else:
        held = True
    try:
        yield held
    finally:
        os.close(descriptor)
