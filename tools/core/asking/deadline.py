"""Implements deadlines that pause while a user thinks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import anyio


class PausableDeadline:
    """A call's deadline, which pauses while a user answers a question.

    Args:
        outer: The deadline of the calling call, which pauses as well.

    Attributes:
        scope: A scope cancelled at the deadline; the code that waits for the work enters it.
    """

    def __init__(self, seconds: float, outer: PausableDeadline | None = None) -> None:
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        self._outer = outer
        self._left = seconds
        self._open_questions = 0

    def renew(self, seconds: float) -> None:
        """Extends the deadline to at least so many seconds from now."""
        self._left = max(self._left, seconds)
        if not self._open_questions:
            left_at = anyio.current_time() + seconds
            self.scope.deadline = max(self.scope.deadline, left_at)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pauses the deadline while a question is open; questions may overlap."""
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
