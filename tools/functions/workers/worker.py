"""Runs one worker process on the server's side: starts, calls and retires it."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.functions.workers.answers import Answers
from tools.functions.workers.bounds import weight
from tools.functions.workers.messages import (
    Load,
    Loaded,
    Message,
    decode_loaded,
    encode,
    lines,
)
from tools.functions.workers.process import WorkerProcess

logger = logging.getLogger("toolcrib")

GRACE = 2.0
"""Seconds that a cancelled call, or a worker asked to end, has to finish."""
DRAIN = 0.5
"""Seconds to read what a dead worker left in its pipes, which a child may keep open."""
WAITING = 100
"""Maximum messages of a call that wait for a slow client; further ones are dropped."""
MOST_ASKED = 1_000
"""Maximum waiting questions of a call; a worker that exceeds this is ended."""
MOST_MESSAGES = 2
"""Limit for a cell's open questions, in multiples of the heaviest message; a cell that exceeds it
is ended."""
LONGEST_FAULT = 200
"""Maximum characters of the problem with a message that are reported."""

DURING_A_CALL = ("progress", "tell", "changed", "ask", "withdraw")
"""The keys of messages during a call; their value is the call's number."""

Replies = MemoryObjectReceiveStream[Message]
Sink = Callable[[bytes], None]
"""Receives what a worker prints; an empty chunk is the end."""


class WorkerEndedError(Exception):
    """The process ended before it answered; the text describes how."""


class Worker:
    """One process that runs one version of one function file; see `run`.

    A call that ignores its cancellation retires its worker, which gets no new calls and is killed
    when only such calls are left.
    """

    def __init__(
        self,
        name: str,
        process: WorkerProcess,
        sink: Sink,
        group: TaskGroup,
        ended: anyio.Event,
    ) -> None:
        self.loaded: Loaded | None = None
        self.retired = False
        self._name = name
        self._process = process
        self._sink = sink
        self._group = group
        self._numbers = count(1)
        self._calls: dict[int, MemoryObjectSendStream[Message]] = {}
        self._answering: dict[int, anyio.CancelScope] = {}
        self._stuck: set[int] = set()
        self._output_scope = anyio.CancelScope(shield=True)  # the last output counts too
        self._ended = ended
        self._is_over = False
        self._fault = ""
        self._asked: dict[tuple[int, int], int] = {}
        """The weight of each open question, by its call and its number."""

    @staticmethod
    async def run(
        start: Callable[[], Awaitable[WorkerProcess]],
        load: Load,
        sink: Sink,
        *,
        task_status: TaskStatus[Worker],
    ) -> None:
        """Runs a worker until it ends; reports `started` when it has loaded its task.

        Raises:
            WorkerEndedError: If it ended while loading.
        """
        process = await start()
        ended = anyio.Event()
        try:
            async with anyio.create_task_group() as group:
                worker = Worker(Path(load.path).name, process, sink, group, ended)
                await worker._serve(load, task_status)
        finally:
            with anyio.CancelScope(shield=True):
                await process.aclose()
            ended.set()
        if worker.loaded is None:
            raise WorkerEndedError(worker._ending())

    async def call(self, asked: Mapping[str, Any], context: RequestContext) -> Message:
        """Sends the worker a call and returns its answer, which may be a failure.

        Raises:
            WorkerEndedError: If the process ended before it answered.
        """
        number = next(self._numbers)
        whose = {"identity": asdict(context.identity), "bound": context.origin.bound}
        try:
            line = encode({"call": number, **asked, **whose})
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentsError(f"JSON cannot express these arguments: {error}.") from error
        self._calls[number], replies = anyio.create_memory_object_stream[Message](math.inf)
        try:
            await self._process.send(line)
            async with anyio.create_task_group() as group:
                self._answering[number] = group.cancel_scope
                answered = partial(self._forget, number)
                answers = Answers(context, group, self._send_message, answered)
                async for reply in replies:
                    if "result" in reply:
                        self._process.read_printed(self._sink)
                        group.cancel_scope.cancel()  # cancels questions it did not wait for
                        return reply
                    await answers.take(reply)
                group.cancel_scope.cancel()
            await self._process.wait()
            raise WorkerEndedError(self._ending())
        finally:
            self._answering.pop(number, None)
            self._asked = {key: each for key, each in self._asked.items() if key[0] != number}
            if number in self._calls:  # cancelled by its caller
                self._group.start_soon(self._cancel, number, replies)
            else:
                replies.close()

    def retire(self) -> None:
        """Stops new calls, and lets the process end after the running ones."""
        self.retired = True
        if self._calls.keys() <= self._stuck and not self._is_over:
            is_urgent = bool(self._stuck) or self._process.is_confined
            self._group.start_soon(_end, self._process, 0 if is_urgent else GRACE)

    async def aclose(self) -> None:
        """Ends the process at once; returns when all its output is passed on."""
        with anyio.CancelScope(shield=True):
            await self._process.kill()
            await self._ended.wait()

    async def _serve(self, load: Load, task_status: TaskStatus[Worker]) -> None:
        self._group.start_soon(self._read_output)
        self._group.start_soon(self._read, task_status)
        try:
            await self._process.send(encode({"load": asdict(load)}))
            await self._process.wait()
        finally:
            self._is_over = True
            with anyio.CancelScope(shield=True):
                await _end(self._process, DRAIN)
            deadline = anyio.current_time() + DRAIN
            self._group.cancel_scope.deadline = self._output_scope.deadline = deadline

    async def _read_output(self) -> None:
        try:
            with self._output_scope:
                await self._process.read_output(self._sink)
        finally:
            self._sink(b"")

    async def _read(self, task_status: TaskStatus[Worker]) -> None:
        """Handles the worker's messages until it hangs up."""
        bounds = self._process.bounds
        try:
            async for line in lines(self._process.incoming, bounds):
                message = self._process.checked(bounds.decode(line))
                if "loaded" in message and self.loaded is None:
                    self.loaded = decode_loaded(message)
                    task_status.started(self)
                elif "log" in message:
                    logger.log(message["log"], "%s: %s", self._name, message["text"])
                else:
                    if "ask" in message and message["ask"] in self._answering:
                        self._note(message, weight(line))
                    self._take(message)
        except Exception as error:  # an invalid message must only end the worker
            logger.exception("The worker of %s sent an invalid message and is ended", self._name)
            self._fault = f"{error}".partition("\n")[0][:LONGEST_FAULT].rstrip(".")
            await self._process.kill()
        finally:
            self.retired = True
            for number, call in self._calls.items():
                call.close()
                if number in self._answering:  # nobody needs the answers
                    self._answering[number].cancel()
            self._calls.clear()
        await _end(self._process, DRAIN)  # ends a process that only hung up

    def _note(self, message: Message, heavy: int) -> None:
        """Counts a question's weight until it is answered."""
        key = message["ask"], message["id"]
        if key in self._asked:
            raise ValueError("It asked two questions under one number.")
        self._asked[key] = heavy
        most = MOST_MESSAGES * self._process.bounds.heaviest
        if most and sum(self._asked.values()) > most:
            raise ValueError("It has too many open questions.")

    def _forget(self, call: int, number: int) -> None:
        self._asked.pop((call, number), None)

    def _ending(self) -> str:
        if self._fault:
            return f"was ended, because it sent an invalid message: {self._fault}"
        return self._process.ending()

    def _take(self, message: Message) -> None:
        if "result" not in message:
            kind = next((key for key in DURING_A_CALL if key in message), "")
            if not kind:
                raise ValueError("It does not concern a call.")
            call = self._calls.get(message[kind])  # a function may continue after its call's end
            waiting = call.statistics().current_buffer_used if call else 0
            is_asked = kind in {"ask", "withdraw"}
            if waiting >= MOST_ASKED and is_asked:
                raise ValueError("It asked too many questions.")
            if call and (is_asked or waiting < WAITING):
                _deliver(message, call)
            return
        number = message["result"]
        with self._calls.pop(number) as call:
            _deliver(message, call)
        self._stuck.discard(number)
        if self.retired:
            self.retire()

    async def _cancel(self, number: int, replies: Replies) -> None:
        """Cancels a call in the worker; one that continues anyway retires the worker."""
        with replies:
            with anyio.move_on_after(GRACE):
                await self._process.send(encode({"cancel": number}))
                async for _ in replies:
                    pass
                return
        self._stuck.add(number)
        self.retire()

    async def _send_message(self, message: Message) -> None:
        await self._process.send(encode(message))


def _deliver(message: Message, call: MemoryObjectSendStream[Message]) -> None:
    with suppress(anyio.BrokenResourceError):  # the caller of a stuck call is gone
        call.send_nowait(message)


async def _end(process: WorkerProcess, grace: float) -> None:
    """Ends a process and its children: gracefully for some seconds, then by force."""
    with anyio.move_on_after(grace):
        await process.hang_up()
        await process.wait()
    await process.kill()
