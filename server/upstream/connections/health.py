"""Health: how another server fares, and when one that cannot be reached is tried again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from enum import StrEnum

FIRST_DELAY = 1.0
"""Seconds until the second try."""

LONGEST_DELAY = 60.0

STEADY = 60.0
"""Seconds that a server has to stay up for its earlier failures to be forgotten."""


class State(StrEnum):
    """Whether a server can be used."""

    OFF = "off"
    """Nobody has needed it yet."""
    STARTING = "starting"
    UP = "up"
    DOWN = "down"


class Backoff:
    """Doubles the time between tries, and spreads it so that servers are not tried all at once.

    Args:
        clock: Seconds that only grow.
        spread: A number from 0 to 1, another one each time.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._spread = spread
        self._failures = 0
        self._next_try = 0.0

    @property
    def remaining(self) -> float:
        """Seconds until the next try; 0 when it may be now."""
        return max(0.0, self._next_try - self._clock())

    def failed(self, lived: float = 0.0) -> None:
        """Notes that the server could not be reached, or ended by itself.

        One that was up for long, or ends for the first time, is tried again at once.

        Args:
            lived: Seconds that it was up before.
        """
        if lived >= STEADY:
            self._failures = 0
        at_once = lived > 0 and not self._failures
        delay = 0.0 if at_once else min(LONGEST_DELAY, FIRST_DELAY * 2**self._failures)
        self._failures = min(self._failures + 1, 16)  # far beyond the longest delay
        self._next_try = self._clock() + delay * (0.5 + self._spread() / 2)


class Health:
    """How one server fares.

    Attributes:
        state: Whether it can be used.
        since: When that began; Unix seconds.
        problem: Why it cannot be reached; empty while it can.
        restarts: How often it was reached again after it had ended by itself.
    """

    def __init__(self) -> None:
        self.state = State.OFF
        self.since = time.time()
        self.problem = ""
        self.restarts = 0
        self._ended = False

    def note(self, state: State, problem: str = "") -> None:
        """Takes note of what it is now.

        Args:
            state: Whether it can be used.
            problem: Why not.
        """
        if state is not self.state:
            self.since = time.time()
        if state is State.UP:
            self.restarts += self._ended
            self._ended = False
        elif state is State.DOWN and self.state is State.UP:
            self._ended = True
        self.state, self.problem = state, problem
