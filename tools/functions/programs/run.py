"""Runs one program in a cell of its own, which ends with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel, ValidationError

from tools.core.context import RequestContext
from tools.core.errors import UnavailableError
from tools.core.machine import Machine
from tools.functions.programs.cells import cells_of
from tools.functions.programs.source import FILE
from tools.functions.workers.messages import Load
from tools.functions.workers.worker import Sink, Worker, WorkerEndedError


class Outcome(BaseModel):
    """The outcome reported by a program; untrusted, since an agent wrote it.

    Attributes:
        error: The traceback of a failure; None after success.
    """

    value: Any = None
    error: str | None = None
    notes: list[str] = []


@asynccontextmanager
async def started(code: str, machine: Machine, output: Sink) -> AsyncIterator[Worker]:
    """Yields a worker that has loaded a program and is ready to run it; it ends with the block.

    `output`: receives what it prints, completely by the end of the block.
    """
    cells = await cells_of(machine)
    try:
        worker = await cells.take(Load(path=FILE, source=code, kind="program"), output)
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
