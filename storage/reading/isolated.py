"""Runs parsers of hostile bytes in processes that are killed at a deadline."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio
from anyio import BrokenWorkerProcess, to_process

from storage.errors import UnreadableDocumentError

MEMORY_BYTES = 1 << 30  # the memory limit of a worker process, if the system supports one
_PATIENCE = 10  # on a busy machine, a parser may take this many times its processor time
_SMALLER = ("Split it, or convert it to plain text or Markdown, and add that.",)
T = TypeVar("T")


class _ExhaustedError(BaseException):
    """The processor time is used up; a BaseException, so that parsers do not catch it."""


async def run_isolated(
    parse: Callable[[], T],
    *,
    name: str,
    timeout: float,  # noqa: ASYNC109  # named in the error
) -> T:
    """Runs a module's function, or a partial of one, in a worker process.

    The process is killed after `timeout` seconds of processor time, when it hangs, or when the
    caller is cancelled. Exceptions of the parser are passed on; other failures raise
    UnreadableDocumentError.
    """
    seconds = _PATIENCE * timeout
    try:
        with anyio.fail_after(seconds):
            return await to_process.run_sync(_run_limited, parse, timeout, cancellable=True)
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


def _run_limited(parse: Callable[[], T], timeout: float) -> T:
    try:
        with _limit_memory(), _limit_time(timeout):
            return parse()
    except _ExhaustedError:
        raise TimeoutError(f"{timeout:g} seconds of processor time") from None


@contextmanager
def _limit_time(seconds: float) -> Iterator[None]:
    """Limits processor time; further timers end the process if the first or its parent fails."""
    if not hasattr(signal, "setitimer"):  # Windows has none
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        raise _ExhaustedError

    signal.signal(signal.SIGPROF, stop)  # waits for a C function to return; the next two do not
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
def _limit_memory() -> Iterator[None]:
    """Limits memory, so that a file that unpacks endlessly fails before the machine runs out."""
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
