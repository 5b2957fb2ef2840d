"""When a server that cannot be reached is tried again."""

import pytest

from server.upstream.upstream import Backoff


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_time_between_tries_doubles_up_to_a_minute() -> None:
    backoff = Backoff(Clock(), lambda: 1.0)
    waits = []
    for _ in range(9):
        backoff.failed()
        waits.append(backoff.remaining)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize(("spread", "expected"), [(0.0, 0.5), (1.0, 1.0)])
def test_tries_are_spread(spread: float, expected: float) -> None:
    backoff = Backoff(Clock(), lambda: spread)
    backoff.failed()
    assert backoff.remaining == expected


def test_a_server_that_ends_for_the_first_time_is_tried_at_once() -> None:
    backoff = Backoff(Clock(), lambda: 1.0)
    backoff.failed(lived=3.0)
    assert backoff.remaining == 0
    backoff.failed(lived=3.0)
    assert backoff.remaining == 2


def test_a_server_that_was_up_for_long_is_forgiven() -> None:
    backoff = Backoff(Clock(), lambda: 1.0)
    for _ in range(5):
        backoff.failed()
    backoff.failed(lived=3_600.0)
    assert backoff.remaining == 0


def test_time_passes() -> None:
    clock = Clock()
    backoff = Backoff(clock, lambda: 1.0)
    backoff.failed()
    clock.now += 0.75
    assert backoff.remaining == 0.25
    clock.now += 10
    assert backoff.remaining == 0
