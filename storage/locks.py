"""Locks between processes and threads."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Holds the lock on a file, which is created if missing, during the block.

    The system releases it when the process dies. Yields whether it is held; without `wait` it may
    not be.
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


class Presence:
    """Detects which processes of a data directory are alive, by a lock that each holds.

    The folder of the locks is created if missing. The name is that of this process or of one of its
    tasks, by default a new one.
    """

    def __init__(self, directory: Path, name: str = "") -> None:
        self.name = name or uuid.uuid4().hex
        self._directory = directory
        self._held = ExitStack()
        self._begun = False
        self._turn = Lock()

    def begin(self) -> None:
        """Holds this process's lock until `end` or its death; calling it again does nothing."""
        with self._turn:
            if not self._begun:
                self._directory.mkdir(mode=0o700, exist_ok=True)
                self._held.enter_context(locked(self._path(self.name), wait=True))
                self._begun = True

    def end(self) -> None:
        """Releases the lock."""
        with suppress(FileNotFoundError):
            self._path(self.name).unlink()
        self._held.close()

    def is_alive(self, name: str) -> bool:
        """Returns whether a process is alive; removes the lock of a dead one."""
        path = self._path(name)
        if not path.exists():
            return False
        with locked(path, wait=False) as is_ours:
            if is_ours:
                path.unlink(missing_ok=True)
        return not is_ours

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.lock"


class made_once(Generic[T]):  # noqa: N801  # a decorator, as `property` is
    """A `cached_property` that computes its value once, even if several threads ask."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._lock = RLock()  # computing a value may need another such attribute
        self.__doc__ = make.__doc__

    def __get__(self, instance: object, _owner: type) -> T:
        made = vars(instance)
        name = self._make.__name__
        with self._lock:
            if name not in made:
                made[name] = self._make(instance)
            value: T = made[name]
            return value
