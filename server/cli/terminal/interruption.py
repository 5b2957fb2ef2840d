"""Handles Ctrl-C in asynchronous commands."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import anyio

Result = TypeVar("Result")


@contextmanager
def stoppable(advice: str) -> Iterator[None]:
    """Reports on stderr, after a Ctrl-C, that the command stopped.

    Args:
        advice: How to continue, in sentences.

    Raises:
        SystemExit: With 130, instead of the KeyboardInterrupt.
    """
    try:
        yield
    except KeyboardInterrupt:
        from server.cli.terminal.screen import console, print_line

        print_line(console(), f"Stopped. {advice}")
        sys.exit(128 + signal.SIGINT)


def run(work: Callable[[], Awaitable[Result]]) -> Result:
    """Runs some work to its end or to a Ctrl-C, which its threads notice between two steps.

    asyncio's own handling detaches the threads: they continue to write while the library closes,
    and their results end in a traceback.

    Raises:
        KeyboardInterrupt: After a Ctrl-C, once no part of the work is running.
    """
    results = anyio.run(partial(_run_cancellable, work))
    if not results:
        raise KeyboardInterrupt
    return results[0]


async def _run_cancellable(work: Callable[[], Awaitable[Result]]) -> list[Result]:
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:
        loop.add_signal_handler(signal.SIGINT, scope.cancel)
        try:
            result = await work()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
    return [] if scope.cancel_called else [result]
