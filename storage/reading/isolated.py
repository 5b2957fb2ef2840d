"""Parsers of hostile bytes, each in a process that is killed at its deadline."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio
from anyio import BrokenWorkerProcess, to_process

from storage.errors import UnreadableDocumentError

MEMORY_BYTES = 1 << 30
"""Memory that a worker process may use, where the system can limit it."""

_PATIENCE = 10
"""How many times as long as its processor time a parser may take on a busy machine."""

_SMALLER = ("Split it, or convert it to plain text or Markdown, and add that.",)

T = TypeVar("T")


class _ExhaustedError(BaseException):
    """The processor time is over; parsers catch no exception of this kind."""


async def run_isolated(
    parse: Callable[[], T],
    *,
    name: str,
    timeout: float,  # noqa: ASYNC109  # the error says how long it was
) -> T:
    """What a parser makes of a file, in a worker process.

    The process is killed when it hangs, or when the caller is cancelled.

    Args:
        parse: The parser with the file's bytes; a function of a module, or a partial of one.
        name: The file's name, for errors.
        timeout: Seconds of processor time that it may take.

    Raises:
        UnreadableDocumentError: If it takes too long or too much memory, or the process dies of it;
            and whatever the parser raises.
    """
    seconds = _PATIENCE * timeout
    try:
        with anyio.fail_after(seconds):
            return await to_process.run_sync(_limited, parse, timeout, cancellable=True)
    except TimeoutError as error:
        raise UnreadableDocumentError(
            f"{name!r} took longer than {str(error) or f'{seconds:g} seconds'} to read.",
            suggestions=_SMALLER,
        ) from error
    except MemoryError as error:
        raise UnreadableDocumentError(
            f"{name!r} takes more than {MEMORY_BYTES >> 20:,} MiB of memory to read.",
            suggestions=_SMALLER,
        ) from error
    except BrokenWorkerProcess as error:
        raise UnreadableDocumentError(
            f"{name!r} is damaged or too large: the process that read it died.",
            suggestions=("Save it again with the program it comes from, or as plain text.",),
        ) from error


def _limited(parse: Callable[[], T], timeout: float) -> T:
    try:
        with _limited_memory(), _limited_time(timeout):
            return parse()
    except _ExhaustedError:
        raise TimeoutError(f"{timeout:g} seconds of processor time") from None


@contextmanager
def _limited_time(seconds: float) -> Iterator[None]:
    """Limits processor time; ends this process where that, or who was to kill it, has failed."""
    if not hasattr(signal, "setitimer"):  # Windows has none
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        raise _ExhaustedError

    signal.signal(signal.SIGPROF, stop)  # waits for a function in C to return; these two do not
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    timers = (signal.ITIMER_PROF, signal.ITIMER_VIRTUAL, signal.ITIMER_REAL)
    try:
        for timer, left in zip(
            timers, (seconds, 2 * seconds + 1, _PATIENCE * seconds + 1), strict=True
        ):
            signal.setitimer(timer, left)
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Makes a file that unpacks without end fail here, before the machine runs out of memory."""
    try:
        import resource  # Windows has none
    except ImportError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [size for size in (MEMORY_BYTES, soft, hard) if size != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
