"""Makes environments in one step: beside their place, and moved there when they are whole.

Whoever makes one holds a lock that other servers on the data directory respect too.
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
"""Seconds between two looks at a lock that another server holds; waiting in a thread for it could
not be cancelled."""


async def make_whole(
    path: Path,
    make: Callable[[Path], Awaitable[None]],
    is_whole: Callable[[], Awaitable[bool]],
    report: Report,
) -> None:
    """Makes a directory, unless another server has made it meanwhile; replaces what is there.

    Args:
        path: The directory.
        make: Makes it elsewhere; where this fails or is cancelled, nothing of it is left.
        is_whole: Whether it is there already.
        report: Told that another server makes it.

    Raises:
        OSError: If it cannot be put in its place.
    """
    await anyio.Path(path.parent).mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    async with alone(path, report):
        if await is_whole():
            return  # made by whoever held the lock
        try:
            await make(unfinished)
            await anyio.to_thread.run_sync(_replace, path, unfinished)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_remove, unfinished)


@asynccontextmanager
async def alone(path: Path, report: Report) -> AsyncIterator[None]:
    """Holds the lock of a directory, for which it waits."""
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
