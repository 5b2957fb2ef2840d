"""What one process, or one thread, does at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Generic, TypeVar

__all__ = ["locked", "made_once"]

T = TypeVar("T")


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Holds the lock on a file, made where it is missing, for the length of the block.

    The system frees it when the process that holds it dies.

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


class made_once(Generic[T]):  # noqa: N801  # a decorator, as `property` is
    """A `cached_property` that makes one value however many threads ask at once.

    The standard library's does so no longer, from Python 3.12 on.

    Args:
        make: Makes the value from the instance.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._lock = RLock()  # what is made may ask for another such attribute
        self.__doc__ = make.__doc__

    def __get__(self, instance: object, _owner: type) -> T:
        made = vars(instance)
        name = self._make.__name__
        with self._lock:
            if name not in made:
                made[name] = self._make(instance)
            value: T = made[name]
            return value
