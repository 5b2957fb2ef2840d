"""Manages code workers: confined processes that each run one program or one set of functions.

A code worker sees the interpreter and our packages, but no root, home, network or session. So a
spare one can serve any caller.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus
from pydantic import BaseModel, ValidationError

from tools.core.context import RequestContext
from tools.core.errors import RateLimitedError, ToolError, UnavailableError
from tools.core.machine import Machine, first_use
from tools.functions.programs.code_worker import FILE
from tools.functions.programs.confined_process import ConfinedProcess
from tools.functions.workers import bootstrap
from tools.functions.workers.messages import Load
from tools.functions.workers.process import OutputLog, Sink
from tools.functions.workers.worker import Worker, WorkerEndedError
from tools.sandbox.processes.confinement.denied_paths import DeniedPaths
from tools.sandbox.processes.idle_workers import Background
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.processes import Processes
from tools.sandbox.processes.temporary import PrivateDirectory

_logger = logging.getLogger("toolcrib")

IDLE_SECONDS = 300.0  # seconds that a spare process waits for a program

MOST_AT_ONCE = 64
"""Maximum running code workers; tools that call each other could otherwise start any number."""

MOST_LOGGED = 100
"""Maximum lines that one process may log; more would push the rest out of the rotated log."""

_COMMAND = (sys.executable, "-I", "-X", "utf8", bootstrap.__file__, "confined")


class CodeWorkers:
    """Provides confined processes for programs and functions; close with `aclose`."""

    def __init__(
        self,
        make: Callable[[Path], Processes],  # they see nothing of the user's; the root is empty
        memory_bytes: int,  # limit of one process; 0 sets none
    ) -> None:
        self._memory_bytes = memory_bytes
        self._root = PrivateDirectory()
        self._processes = make(Path(self._root.path))
        self._background = Background()
        self._spare: _Spare | None = None
        self._running_now = 0

    async def is_confined(self) -> bool:
        """Returns whether every code worker is confined."""
        return await self._processes.is_confined()

    async def is_offline(self) -> bool:
        """Returns whether every code worker is confined and has no network."""
        return await self._processes.is_offline()

    async def denied(self) -> DeniedPaths:
        """Returns which path rules are not enforced for code workers."""
        return await self._processes.denied()

    async def take(self, load: Load, output: Sink | None = None) -> Worker:
        """Returns a worker that has loaded a program or functions; close it with `aclose`.

        The worker is untrusted: an agent wrote its code, and it may send anything. If
        `loaded.offers` is None, the code could not be loaded; `loaded.problems` says why. Without
        `output`, the log gets what it prints.
        """
        group = await self._background.group()
        sink = output or OutputLog(Path(load.path).name, MOST_LOGGED).feed
        limited = replace(load, memory_bytes=self._memory_bytes)
        worker: Worker = await group.start(self._run, limited, sink)
        return worker

    async def aclose(self) -> None:
        """Ends all code workers."""
        with anyio.CancelScope(shield=True):
            try:
                await self._background.aclose()
            finally:
                await self._processes.aclose()
                await anyio.to_thread.run_sync(self._root.close)

    async def _run(self, load: Load, sink: Sink, *, task_status: TaskStatus[Worker]) -> None:
        """Runs a worker; after loading, its failures do not affect others."""
        if self._running_now >= MOST_AT_ONCE:
            raise RateLimitedError(
                f"{MOST_AT_ONCE} programs and created tools are already running.",
                next_actions=["Call it again when others have ended, and fewer within each other."],
            )
        self._running_now += 1
        try:
            await Worker.run(self._next, load, sink, task_status=task_status)
        except (WorkerEndedError, ToolError):  # its caller gets the error
            raise
        except Exception:
            _logger.exception("The process of %s failed and was ended", load.path)
        finally:
            self._running_now -= 1

    async def _next(self) -> ConfinedProcess:
        """Returns the spare process or a new one, and starts the next spare."""
        spare, self._spare = self._spare, None
        try:
            process = None if spare is None else await spare.take_over()
        except BaseException:  # stays spare for another caller
            self._spare = self._spare or spare
            raise
        group = await self._background.group()
        if process is None:
            process = await self._start()
        if self._spare is None:
            self._spare = _Spare(self._start)
            group.start_soon(self._spare.wait)  # before another caller takes it
        return process

    async def _start(self) -> ConfinedProcess:
        return await ConfinedProcess.start(self._processes, Command(argv=_COMMAND, writes=False))


async def code_workers_of(machine: Machine) -> CodeWorkers:
    """Returns the code workers of a machine."""
    return cast("CodeWorkers", await first_use(machine, "code_workers"))


class _Spare:
    """A process that is started in advance, and ended if it is not used in time."""

    def __init__(self, start: Callable[[], Awaitable[ConfinedProcess]]) -> None:
        self._start = start
        self._started = anyio.Event()
        self._taken = anyio.Event()
        self._process: ConfinedProcess | None = None

    async def wait(self) -> None:
        """Starts the process, and ends it if it is not taken in time."""
        try:
            self._process = await self._start()
        except Exception:  # the next program starts its own, and reports a failure
            _logger.warning("No spare process could be started for the next program", exc_info=True)
        finally:
            self._started.set()
        try:
            with anyio.move_on_after(IDLE_SECONDS):
                await self._taken.wait()
        finally:
            process, self._process = self._process, None
            if process is not None:
                await process.aclose()

    async def take_over(self) -> ConfinedProcess | None:
        """Waits for the process and returns it, once; None if it failed to start or has ended."""
        await self._started.wait()
        process, self._process = self._process, None
        self._taken.set()
        if process is not None and process.has_ended:
            await process.aclose()
            return None
        return process


class Outcome(BaseModel):
    """The outcome reported by a program; untrusted, since an agent wrote it."""

    value: Any = None
    error: str | None = None  # the traceback of a failure
    notes: list[str] = []


@asynccontextmanager
async def started(code: str, machine: Machine, output: Sink) -> AsyncIterator[Worker]:
    """Yields a worker that has loaded a program and is ready to run it; it ends with the block.

    `output`: receives what it prints, completely by the end of the block.
    """
    code_workers = await code_workers_of(machine)
    try:
        worker = await code_workers.take(Load(path=FILE, source=code, kind="program"), output)
    except WorkerEndedError as error:
        raise UnavailableError(f"A process for the program {error} before it began.") from error
    try:
        yield worker
    except BaseException:
        await worker.aclose()
        raise
    worker.retire()  # it has answered, so no need to wait for its end


async def outcome_of(worker: Worker, context: RequestContext) -> Outcome:
    """Runs the program and returns its outcome."""
    try:
        message = await worker.call({}, context)
        return Outcome.model_validate(message["structured"])
    except WorkerEndedError as error:
        return Outcome(error=f"Its process {error}.")
    except (KeyError, ValidationError):
        return Outcome(error="Its process sent something other than a result.")
