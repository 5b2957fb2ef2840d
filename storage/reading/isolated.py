"""Parsers of hostile bytes, each in a process that is killed at its deadline."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio
from anyio import BrokenWorkerProcess, to_process

from storage.errors import UnreadableDocumentError

__all__ = ["run_isolated"]

MEMORY_BYTES = 4 << 30
"""Address space that a worker process may use, where the system can limit it."""

T = TypeVar("T")


async def run_isolated(
    parse: Callable[[], T],
    *,
    name: str,
    timeout: float,  # noqa: ASYNC109  # the error says how long it was
) -> T:
    """What a parser makes of a file, in a worker process.

    The process is killed at the deadline, or when the caller is cancelled.

    Args:
        parse: The parser with the file's bytes; a function of a module, or a partial of one.
        name: The file's name, for errors.
        timeout: Seconds that it may take.

    Raises:
        UnreadableDocumentError: If it takes too long, or the process dies of it; and whatever the
            parser raises.
    """
    try:
        with anyio.fail_after(timeout):
            return await to_process.run_sync(_limited, parse, timeout, cancellable=True)
    except TimeoutError as error:
        raise UnreadableDocumentError(
            f"{name!r} took longer than {timeout:g} seconds to read.",
            suggestions=("Split it, or convert it to plain text or Markdown, and add that.",),
        ) from error
    except BrokenWorkerProcess as error:
        raise UnreadableDocumentError(
            f"{name!r} is damaged: the process that read it died.",
            suggestions=("Save it again with the program it comes from, or as plain text.",),
        ) from error


def _limited(parse: Callable[[], T], timeout: float) -> T:
    with _limited_memory(), _limited_time(timeout + 1):
        return parse()


@contextmanager
def _limited_time(seconds: float) -> Iterator[None]:
    """Ends this process after so long: whoever was to kill it may itself have been killed."""
    if not hasattr(signal, "setitimer"):  # Windows has none
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Makes a file that unpacks without end fail here, before the machine runs out of memory."""
    try:
        import resource  # Windows has none
    except ImportError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [size for size in (MEMORY_BYTES, soft, hard) if size != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
