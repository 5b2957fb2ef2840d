"""Ctrl-C in a command that runs asynchronously."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import anyio

__all__ = ["run"]

Result = TypeVar("Result")


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
