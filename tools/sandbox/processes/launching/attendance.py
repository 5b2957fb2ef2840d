"""Attending to a program: its output is read until it has ended, and nothing of it is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

from tools.sandbox.processes.models import Ending

__all__ = ["Attendable", "Attended", "attend"]

PIECE = 65_536
"""Bytes that are read at once, as many as a pipe holds."""

AT_A_TIME = 16
"""Pieces that are read before others get their turn."""

MOST_LEFT = 4_194_304
"""Bytes that are still read when a program has ended; no pipe holds more."""

Sink = Callable[[bytes], None]


class Attendable(Protocol):
    """A started program, as the launcher has it."""

    @property
    def stdout(self) -> int:
        """The end that its output is read from, without blocking."""

    @property
    def stderr(self) -> int:
        """The same of its errors."""

    async def wait(self) -> Ending:
        """How it ended, when nothing of it is left."""

    async def kill(self) -> None:
        """Ends all of it."""

    async def aclose(self) -> None:
        """Ends all of it if it still runs, and closes its pipes."""


@dataclass(frozen=True, slots=True)
class Attended:
    """What became of a program.

    Attributes:
        exit_code: As a shell has it: 128 and the signal's number where a signal ended it.
        timed_out: Whether it was ended at its deadline.
    """

    exit_code: int
    timed_out: bool


async def attend(program: Attendable, stdout: Sink, stderr: Sink, *, seconds: float) -> Attended:
    """Reads what a program writes until it has ended, or ends it at its deadline.

    However this returns, also by being cancelled, nothing of the program is left. Its pipes are
    not waited for: what is in them when it has ended is read, whoever might hold them open.

    Args:
        program: What was started; it is closed.
        stdout: Takes its output.
        stderr: Takes its errors.
        seconds: How long it may take.
    """
    try:
        async with anyio.create_task_group() as readers:
            readers.start_soon(_read, program.stdout, stdout)
            readers.start_soon(_read, program.stderr, stderr)
            with anyio.move_on_after(seconds) as deadline:
                await program.wait()
            if deadline.cancelled_caught:
                await program.kill()
            readers.cancel_scope.cancel()
        ending = await program.wait()
        _read_rest(program.stdout, stdout)
        _read_rest(program.stderr, stderr)
        return Attended(ending.exit_code, deadline.cancelled_caught)
    finally:
        with anyio.CancelScope(shield=True):
            await program.aclose()


async def _read(descriptor: int, sink: Sink) -> None:
    """Reads until everybody has closed the pipe."""
    while True:
        await anyio.wait_readable(descriptor)
        for _ in range(AT_A_TIME):
            try:
                data = os.read(descriptor, PIECE)
            except BlockingIOError:
                break
            if not data:
                return
            sink(data)


def _read_rest(descriptor: int, sink: Sink) -> None:
    """Reads what is left in a pipe."""
    left = MOST_LEFT
    while left > 0:
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        if not data:
            return
        sink(data)
        left -= len(data)
