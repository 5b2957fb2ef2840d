"""The worker processes as the server sees them: one waits, several search side by side."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

__all__ = ["WorkerEndedError", "WorkerProcess", "Workers"]

AT_ONCE = 4
"""Searches that run side by side."""

SECONDS_OVER = 2
"""Seconds after the deadline in which the worker ends itself, should the server be gone."""

CHUNK = 1 << 18

START = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from tools.sandbox.search.worker import main; main()"
)
PACKAGES = Path(__file__).parents[3]


class WorkerEndedError(Exception):
    """The worker ended while it was asked."""


class WorkerProcess:
    """A process that searches, one question at a time.

    Args:
        process: The process.
        channel: Our end of its socket, not blocking.
    """

    def __init__(self, process: Process, channel: socket.socket) -> None:
        self._process = process
        self._channel = channel
        self._received = bytearray()
        self._is_asked = False

    @property
    def is_ready(self) -> bool:
        """Whether it can be asked: it runs, and owes no answer."""
        return not self._is_asked and self._process.returncode is None

    @classmethod
    async def start(cls) -> WorkerProcess:
        """Starts one, without the environment, the user's site packages or anything to write to."""
        ours, its = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003  # the standard library's own signature
        try:
            with its:
                process = await anyio.open_process(
                    [sys.executable, "-I", "-S", "-X", "utf8", "-c", START, str(PACKAGES)],
                    stdin=its.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    cwd="/",
                )
        except BaseException:
            ours.close()
            raise
        return cls(process, ours)

    async def ask(
        self,
        operation: str,
        *,
        seconds: float,
        fds: Sequence[int] = (),
        **arguments: Any,  # noqa: ANN401  # JSON of any kind
    ) -> dict[str, Any]:
        """What it answers to one question.

        Args:
            operation: What to do, as `tools.sandbox.search.worker` names it.
            seconds: Seconds that are left for it.
            fds: Open directories that it is given.
            **arguments: What it is told besides.

        Raises:
            WorkerEndedError: If it ended instead.
        """
        alarm = round(seconds) + SECONDS_OVER
        message = json.dumps({"do": operation, "seconds": alarm, **arguments}).encode() + b"\n"
        self._is_asked = True
        try:
            await self._send(message, fds)
            answer = await self._receive()
        except OSError as error:
            raise WorkerEndedError from error
        self._is_asked = False
        return answer

    async def aclose(self) -> None:
        """Kills it, whatever it does."""
        with anyio.CancelScope(shield=True):
            self._channel.close()
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()

    async def _send(self, message: bytes, fds: Sequence[int]) -> None:
        view = memoryview(message)
        while view:
            try:
                if fds:
                    sent = socket.send_fds(self._channel, [view], fds)
                    fds = ()
                else:
                    sent = self._channel.send(view)
            except BlockingIOError:
                await anyio.wait_writable(self._channel)
            else:
                view = view[sent:]

    async def _receive(self) -> dict[str, Any]:
        end = -1
        while end < 0:
            try:
                chunk = self._channel.recv(CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._channel)
                continue
            if not chunk:
                raise WorkerEndedError
            self._received += chunk
            end = self._received.find(b"\n", len(self._received) - len(chunk))
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        answer: dict[str, Any] = json.loads(line)
        return answer


class Workers:
    """Lends worker processes, one to each search."""

    def __init__(self) -> None:
        self._idle: list[WorkerProcess] = []
        self._turns = anyio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[WorkerProcess]:
        """A worker for the block; one that was left without an answer is killed after it."""
        async with self._turns:
            worker = await self._take()
            try:
                yield worker
            finally:
                if worker.is_ready and not self._idle:
                    self._idle.append(worker)
                else:
                    await worker.aclose()

    async def aclose(self) -> None:
        """Ends the one that waits."""
        while self._idle:
            await self._idle.pop().aclose()

    async def _take(self) -> WorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_ready:
                return worker
            await worker.aclose()
        return await WorkerProcess.start()
