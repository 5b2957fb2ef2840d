"""Ends commands: failures as a message on stderr without a traceback, and Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import anyio

from server.cli.invocation import invocation
from server.cli.terminal.screen import echo
from server.settings import SettingsError
from storage.errors import StorageError
from tools.core.errors import ToolError, Words, only_cause

_KNOWN = (SettingsError, StorageError, ToolError)


@contextmanager
def reported() -> Iterator[None]:
    """Prints a failure that the user can act on to stderr.

    Raises:
        SystemExit: With 1, instead of a SettingsError, a StorageError or a ToolError; also if it,
         or a SystemExit, is the only error in a task group's exception group.
    """
    try:
        yield
    except (Exception, BaseExceptionGroup) as error:
        cause = only_cause(error)
        if isinstance(cause, SystemExit):  # rich exits so when the pipe closes: `| head`
            raise cause from None
        if not isinstance(cause, _KNOWN):
            raise
        words = Words(invocation(), typed={})
        echo("\n".join(_lines(cause, words)), err=True)
        sys.exit(1)


def _lines(error: SettingsError | StorageError | ToolError, words: Words) -> Iterator[str]:
    yield words.text(f"Error: {error.message}")
    match error:
        case StorageError():
            yield from map(words.text, error.suggestions)
        case ToolError():
            if error.suggestions:
                yield "Did you mean: " + ", ".join(error.suggestions)
            yield from words.actions(error.next_actions)


Result = TypeVar("Result")


@contextmanager
def stoppable(advice: str) -> Iterator[None]:
    """After a Ctrl-C, reports on stderr how to continue, and exits with 130."""
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
