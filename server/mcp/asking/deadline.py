"""PausableDeadline: a deadline that stands still while somebody is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

__all__ = ["PausableDeadline"]


class PausableDeadline:
    """How long a server may work on a call: the time in which a person thinks is not its own.

    Made where the work begins; entered by whoever waits for it.

    Args:
        seconds: How long.

    Attributes:
        scope: Is cancelled when the time is over.
    """

    def __init__(self, seconds: float) -> None:
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        self._left = seconds
        self._asking = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Has the time stand still, also where several questions are open at once."""
        if not self._asking:
            self._left = self.scope.deadline - anyio.current_time()
            self.scope.deadline = math.inf
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self.scope.deadline = anyio.current_time() + self._left
