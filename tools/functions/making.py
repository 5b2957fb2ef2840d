"""Creates environments atomically: next to their final place, renamed when complete.

The creator holds a lock shared with other servers on the data directory.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from storage.locks import locked
from tools.functions.installer import Report

POLL_INTERVAL = 0.1
"""Seconds between attempts to get a lock; a thread that waits for it could not be cancelled."""


async def make_whole(
    path: Path,
    make: Callable[[Path], Awaitable[None]],
    is_whole: Callable[[], Awaitable[bool]],
    report: Report,
) -> None:
    """Creates or replaces a directory, unless another server has created it meanwhile.

    `make`: creates it at another path; if this fails or is cancelled, nothing is left.
    """
    await anyio.Path(path.parent).mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    async with alone(path, report):
        if await is_whole():
            return  # made by the previous holder of the lock
        try:
            await make(unfinished)
            await anyio.to_thread.run_sync(_replace, path, unfinished)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_remove, unfinished)


@asynccontextmanager
async def alone(path: Path, report: Report) -> AsyncIterator[None]:
    """Waits for and holds the lock of a directory."""
    lock = path.with_name(f"{path.name}.lock")
    reported = False
    while True:
        with locked(lock, wait=False) as held:
            if held:
                yield
                return
        if not reported:
            await report("Waiting for the same environment to be made elsewhere")
            reported = True
        await anyio.sleep(POLL_INTERVAL)


def _replace(path: Path, new: Path) -> None:
    _remove(path)
    new.rename(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
