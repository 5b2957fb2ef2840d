"""Health of other servers: their state, and retries of unreachable ones."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from enum import StrEnum

FIRST_DELAY = 1.0
"""Seconds before the first retry."""

LONGEST_DELAY = 60.0

STEADY = 60.0
"""Seconds of uptime after which earlier failures are forgotten."""


class State(StrEnum):
    """Whether a server can be used."""

    OFF = "off"
    """Not needed yet."""
    STARTING = "starting"
    UP = "up"
    DOWN = "down"


class Backoff:
    """Doubles the delay between retries, with jitter to avoid simultaneous ones.

    Args:
        clock: A monotonic clock in seconds.
        spread: Returns a random number from 0 to 1.
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
        """Seconds until the next try; 0 if it is due."""
        return max(0.0, self._next_try - self._clock())

    def failed(self, lived: float = 0.0) -> None:
        """Records that the server could not be reached, or ended by itself.

        It is retried at once after a long uptime or its first end.

        Args:
            lived: Seconds that it was up.
        """
        if lived >= STEADY:
            self._failures = 0
        at_once = lived > 0 and not self._failures
        delay = 0.0 if at_once else min(LONGEST_DELAY, FIRST_DELAY * 2**self._failures)
        self._failures = min(self._failures + 1, 16)  # far beyond the longest delay
        self._next_try = self._clock() + delay * (0.5 + self._spread() / 2)


class Health:
    """The health of one server.

    Attributes:
        state: Whether it can be used.
        since: The start of this state, in Unix seconds.
        problem: Why it is unreachable; empty while it is reachable.
        restarts: How often it came up again after ending by itself.
    """

    def __init__(self) -> None:
        self.state = State.OFF
        self.since = time.time()
        self.problem = ""
        self.restarts = 0
        self._ended = False

    def note(self, state: State, problem: str = "") -> None:
        """Records a new state.

        Args:
            state: Whether it can be used.
            problem: The reason, if it cannot.
        """
        if state is not self.state:
            self.since = time.time()
        if state is State.UP:
            self.restarts += self._ended
            self._ended = False
        elif state is State.DOWN and self.state is State.UP:
            self._ended = True
        self.state, self.problem = state, problem
