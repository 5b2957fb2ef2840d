"""Ending on SIGINT and SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["stopped_by_signals"]


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Calls `stop` on the first SIGINT or SIGTERM; a second one has its usual effect.

    Args:
        stop: Runs inside the signal handler, in the main thread.
    """

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    def handle(_number: int, _frame: FrameType | None) -> None:
        restore()
        stop()

    usual = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        restore()
