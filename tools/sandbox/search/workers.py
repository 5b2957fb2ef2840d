"""The pool of worker processes: several search in parallel, and one stays idle."""

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
from anyio.abc import Process, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tools.sandbox.processes.idle_workers import IdleWorkers

Answer = dict[str, Any]  # a JSON object
MAX_WORKERS = 4  # limit on parallel searches
MAX_ANSWER_BYTES = 1 << 26

START = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from tools.sandbox.search.worker import main; main()"
)
PACKAGES = Path(__file__).parents[3]


class WorkerEndedError(Exception):
    """The worker ended before it answered."""


class Worker:
    """A search process, which handles one question at a time.

    `channel` is our end of the socket on its standard input, and `stream` the same as a stream.
    """

    def __init__(self, process: Process, channel: socket.socket, stream: SocketStream) -> None:
        self._process = process
        self._channel = channel
        self._stream = stream
        self._answers = BufferedByteReceiveStream(stream)
        self._is_busy = False

    @property
    def is_ready(self) -> bool:
        """True if it is running and has no pending answer."""
        return not self._is_busy and self._process.returncode is None

    @classmethod
    async def start(cls) -> Worker:
        """Starts a worker, without environment, user site packages or writable files."""
        ours, its = socket.socketpair()
        stream = await SocketStream.from_socket(ours)
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
            await anyio.aclose_forcefully(stream)
            raise
        return cls(process, ours, stream)

    async def ask(self, question: Answer, fds: Sequence[int] = ()) -> Answer:
        """Returns the answer to a question.

        Raises WorkerEndedError if it ended instead.
        """
        message = json.dumps(question).encode() + b"\n"
        self._is_busy = True
        try:
            if fds:  # with the first byte, which always fits into the empty buffer
                socket.send_fds(self._channel, [message[:1]], fds)
                message = message[1:]
            await self._stream.send(message)
            answer = await self._answers.receive_until(b"\n", MAX_ANSWER_BYTES)
        except (OSError, anyio.BrokenResourceError, anyio.IncompleteRead) as error:
            raise WorkerEndedError from error
        self._is_busy = False
        found: Answer = json.loads(answer)
        return found

    async def aclose(self) -> None:
        """Kills it, even if it is busy."""
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(self._stream)
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()


class WorkerPool:
    """Lends worker processes, one to each search."""

    def __init__(self) -> None:
        self._idle: IdleWorkers[Worker] = IdleWorkers(Worker.aclose)
        self._slots = anyio.Semaphore(MAX_WORKERS)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Worker]:
        """Lends a worker for the block; kills it afterwards if an answer is pending."""
        async with self._slots:
            worker = await self._take()
            try:
                yield worker
            finally:
                with anyio.CancelScope(shield=True):
                    await (
                        self._idle.put(worker)
                        if worker.is_ready and not self._idle
                        else worker.aclose()
                    )

    async def aclose(self) -> None:
        """Ends the idle worker."""
        await self._idle.aclose()

    async def _take(self) -> Worker:
        while (worker := self._idle.take()) is not None:
            if worker.is_ready:
                return worker
            await worker.aclose()
        return await Worker.start()
