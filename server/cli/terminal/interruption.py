"""Ctrl-C in a command that runs asynchronously."""

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
    """Says in a line on stderr, after a Ctrl-C, that the command stopped.

    Args:
        advice: How to go on, in sentences.

    Raises:
        SystemExit: With 130, in place of the KeyboardInterrupt.
    """
    try:
        yield
    except KeyboardInterrupt:
        from server.cli.terminal.screen import console, print_line

        print_line(console(), f"Stopped. {advice}")
        sys.exit(128 + signal.SIGINT)


def run(work: Callable[[], Awaitable[Result]]) -> Result:
    """Runs some work to its end, or to a Ctrl-C, which threads of it answer to between two steps.

    asyncio's own way cuts the work off from its threads: they go on writing while the library is
    closed, and what they report then ends in a traceback.

    Raises:
        KeyboardInterrupt: After a Ctrl-C, when nothing of the work runs any more.
    """
    results = anyio.run(partial(_watched, work))
    if not results:
        raise KeyboardInterrupt
    return results[0]


async def _watched(work: Callable[[], Awaitable[Result]]) -> list[Result]:
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:
        loop.add_signal_handler(signal.SIGINT, scope.cancel)
        try:
            result = await work()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
    return [] if scope.cancel_called else [result]
