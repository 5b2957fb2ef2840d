"""Runs one worker process on the server's side: starts, calls, answers and retires it."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from tools.core.context import RequestContext
from tools.core.elicitation.asker import Form
from tools.core.errors import InvalidArgumentsError, as_tool_error
from tools.core.result import encode_result
from tools.functions.workers.messages import (
    MOST_OPEN,
    OF_FILES,
    Lines,
    Load,
    Loaded,
    Message,
    decode_loaded,
    encode_error,
    weight,
)
from tools.functions.workers.process import Sink, WorkerProcess

logger = logging.getLogger("toolcrib")

GRACE = 2.0  # seconds that a cancelled call, or a worker asked to end, has to finish
DRAIN = 0.5  # seconds to read what a dead worker left in its pipes, which a child may keep open
WAITING = 100  # maximum messages of a call that wait for a slow client; further ones are dropped
MOST_ASKED = 1_000  # maximum waiting questions of a call; a worker that exceeds this is ended
MOST_MESSAGES = 2
"""Limit for a code worker's open questions, in multiples of the heaviest message; one that exceeds
it is ended."""
LONGEST_FAULT = 200  # maximum characters of the problem with a message that are reported

DURING_A_CALL = ("progress", "tell", "changed", "ask", "withdraw")
"""The keys of messages during a call; their value is the call's number."""


class WorkerEndedError(Exception):
    """The process ended before it answered; the text describes how."""


class Worker:
    """One process that runs one version of one function file; see `run`.

    A call that ignores its cancellation retires its worker, which gets no new calls and is killed
    when only such calls are left.
    """

    def __init__(self, name: str, process: WorkerProcess, sink: Sink, group: TaskGroup) -> None:
        self.loaded: Loaded | None = None
        self.retired = False
        self._name = name
        self._process = process
        self._sink = sink
        self._group = group
        self._numbers = count(1)
        self._calls: dict[int, _Call] = {}
        self._stuck: set[int] = set()
        self._output_scope = anyio.CancelScope(shield=True)  # the last output counts too
        self._ended = anyio.Event()
        self._is_over = False
        self._fault = ""

    @staticmethod
    async def run(
        start: Callable[[], Awaitable[WorkerProcess]],
        load: Load,
        sink: Sink,
        *,
        task_status: TaskStatus[Worker],
    ) -> None:
        """Runs a worker until it ends; reports `started` when it has loaded its task."""
        process = await start()
        try:
            async with anyio.create_task_group() as group:
                worker = Worker(Path(load.path).name, process, sink, group)
                await worker._serve(load, task_status)
        finally:
            with anyio.CancelScope(shield=True):
                await process.aclose()
            worker._ended.set()
        if worker.loaded is None:
            raise WorkerEndedError(worker._ending())

    async def call(self, asked: Mapping[str, Any], context: RequestContext) -> Message:
        """Sends the worker a call and returns its answer, which may be a failure."""
        number = next(self._numbers)
        whose = {"identity": asdict(context.identity), "bound": context.origin.bound}
        try:
            line = OF_FILES.encode({"call": number, **asked, **whose})
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentsError(f"JSON cannot express these arguments: {error}.") from error
        call = self._calls[number] = _Call(context, self._process)
        try:
            await self._process.send(line)
            async with anyio.create_task_group() as group:
                call.answering = group.cancel_scope
                async for reply in call.replies:
                    if "result" in reply:
                        self._process.read_printed(self._sink)
                        group.cancel_scope.cancel()  # cancels questions it did not wait for
                        return reply
                    await call.take(reply, group)
                group.cancel_scope.cancel()
            await self._process.wait()
            raise WorkerEndedError(self._ending())
        finally:
            call.answering = None
            call.open_weights.clear()
            if number in self._calls:  # cancelled by its caller
                self._group.start_soon(self._cancel, number, call)
            else:
                call.replies.close()

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
            await self._process.send(OF_FILES.encode({"load": asdict(load)}))
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
        lines = Lines(bounds)
        try:
            async for chunk in self._process.incoming:
                for line in lines.feed(chunk):
                    message = self._process.checked(bounds.decode(line))
                    if "loaded" in message and self.loaded is None:
                        self.loaded = decode_loaded(message)
                        task_status.started(self)
                    elif "log" in message:
                        logger.log(message["log"], "%s: %s", self._name, message["text"])
                    elif "result" in message:
                        self._finish(message)
                    else:
                        self._take(message, line)
        except Exception as error:  # an invalid message must only end the worker
            logger.exception("The worker of %s sent an invalid message and is ended", self._name)
            self._fault = f"{error}".partition("\n")[0][:LONGEST_FAULT].rstrip(".")
            await self._process.kill()
        finally:
            self.retired = True
            for call in self._calls.values():
                call.end()
            self._calls.clear()
        await _end(self._process, DRAIN)  # ends a process that only hung up

    def _take(self, message: Message, line: bytes) -> None:
        kind = next((key for key in DURING_A_CALL if key in message), "")
        if not kind:
            raise ValueError("It does not concern a call.")
        call = self._calls.get(message[kind])
        if call is None:  # a function may continue after its call's end
            return
        if kind == "ask" and call.answering is not None:
            call.note_question(message["id"], weight(line))
            open_weight = sum(sum(each.open_weights.values()) for each in self._calls.values())
            if 0 < MOST_MESSAGES * self._process.bounds.heaviest < open_weight:
                raise ValueError("It has too many open questions.")
        is_question = kind in {"ask", "withdraw"}
        waiting = call.waiting
        if is_question and waiting >= MOST_ASKED:
            raise ValueError("It asked too many questions.")
        if is_question or waiting < WAITING:
            call.deliver(message)

    def _finish(self, message: Message) -> None:
        number = message["result"]
        call = self._calls.pop(number)
        call.deliver(message)
        call.messages.close()
        self._stuck.discard(number)
        if self.retired:
            self.retire()

    def _ending(self) -> str:
        if self._fault:
            return f"was ended, because it sent an invalid message: {self._fault}"
        return self._process.ending()

    async def _cancel(self, number: int, call: _Call) -> None:
        """Cancels a call in the worker; one that continues anyway retires the worker."""
        with call.replies:
            with anyio.move_on_after(GRACE):
                await self._process.send(OF_FILES.encode({"cancel": number}))
                async for _ in call.replies:
                    pass
                return
        self._stuck.add(number)
        self.retire()


async def _end(process: WorkerProcess, grace: float) -> None:
    """Ends a process and its children: gracefully for some seconds, then by force."""
    with anyio.move_on_after(grace):
        await process.hang_up()
        await process.wait()
    await process.kill()


class _Call:
    """A running call: answers its questions, and passes on its messages to the client."""

    def __init__(self, context: RequestContext, process: WorkerProcess) -> None:
        self.messages, self.replies = anyio.create_memory_object_stream[Message](math.inf)
        # Cancels its answers; None once its caller no longer waits.
        self.answering: anyio.CancelScope | None = None
        self.open_weights: dict[int, int] = {}  # the weight of each open question, by its number
        self._context = context
        self._process = process
        self._open: dict[int, anyio.CancelScope] = {}
        self._places = anyio.Semaphore(MOST_OPEN)

    @property
    def waiting(self) -> int:
        return self.messages.statistics().current_buffer_used

    def note_question(self, number: int, heavy: int) -> None:
        """Counts a question's weight until it is answered."""
        if number in self.open_weights:
            raise ValueError("It asked two questions under one number.")
        self.open_weights[number] = heavy

    def deliver(self, message: Message) -> None:
        with suppress(anyio.BrokenResourceError):  # the caller of a stuck call is gone
            self.messages.send_nowait(message)

    def end(self) -> None:
        """Ends it without a result."""
        self.messages.close()
        if self.answering is not None:
            self.answering.cancel()

    async def take(self, message: Message, group: TaskGroup) -> None:
        """Handles a message that the worker sends during its call."""
        if "ask" in message:
            await self._places.acquire()  # waits only if the worker's own limit was bypassed
            group.start_soon(self._answer, message)
        elif "withdraw" in message:
            if (scope := self._open.get(message["id"])) is not None:
                scope.cancel()
        elif "tell" in message:
            await self._context.log(message["level"], message["text"])
        elif "changed" in message:
            await self._context.changed(message["uri"])
        else:
            done, total, text = message["done"], message["total"], message["message"]
            await self._context.report_progress(done, total, text)

    async def _answer(self, message: Message) -> None:
        number = message["id"]
        with anyio.CancelScope() as self._open[number]:
            try:
                await self._send({"answer": number, "value": await self._value(message)})
            except Exception as error:  # noqa: BLE001  # the function gets any failure
                failure = encode_error(as_tool_error(error, self._context.tool))
                await self._send({"answer": number, "failure": failure})
        del self._open[number]
        self._places.release()
        self.open_weights.pop(number, None)

    async def _value(self, message: Message) -> object:
        if "form" in message:
            return asdict(await self._context.fill(Form(**message["form"])))
        if "roots" in message:
            return [asdict(each) for each in await self._context.roots()]
        if "prompt" in message:
            prompt = message["prompt"]
            reply = await self._context.sample(
                prompt["text"], system=prompt["system"], max_tokens=prompt["max_tokens"]
            )
            return asdict(reply)
        result = await self._context.result_of(message["tool"], message["arguments"])
        return encode_result(result)

    async def _send(self, message: Message) -> None:
        await self._process.send(OF_FILES.encode(message))
