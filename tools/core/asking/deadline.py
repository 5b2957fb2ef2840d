"""Deadlines that stand still while somebody thinks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import anyio


class PausableDeadline:
    """How long a call may be worked on, without the time in which a person thinks.

    Args:
        seconds: How long, from now on.
        outer: The deadline of the call that makes this one, whose time stands still as well.

    Attributes:
        scope: Is cancelled when the time is over; entered by whoever waits for the work.
    """

    def __init__(self, seconds: float, outer: PausableDeadline | None = None) -> None:
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        self._outer = outer
        self._left = seconds
        self._open_questions = 0

    def renew(self, seconds: float) -> None:
        """Leaves at least so much time from now on."""
        self._left = max(self._left, seconds)
        if not self._open_questions:
            left_at = anyio.current_time() + seconds
            self.scope.deadline = max(self.scope.deadline, left_at)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Has the time stand still while a question is open, one of several maybe."""
        if not self._open_questions:
            self._left = self.scope.deadline - anyio.current_time()
            self.scope.deadline = math.inf
        self._open_questions += 1
        try:
            with ExitStack() as stack:
                if self._outer is not None:
                    stack.enter_context(self._outer.paused())
                yield
        finally:
            self._open_questions -= 1
            if not self._open_questions:
                self.scope.deadline = anyio.current_time() + self._left
