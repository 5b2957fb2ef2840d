"""The run of one program in a cell of its own, of which nothing is left when it ends."""

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
    """What a program says that it came to; an agent wrote it, and it may say anything.

    Attributes:
        value: What it returned.
        error: Why it returned nothing, as a traceback; None where it ended well.
        notes: What else it should be told.
    """

    value: Any = None
    error: str | None = None
    notes: list[str] = []


@asynccontextmanager
async def started(code: str, machine: Machine, output: Sink) -> AsyncIterator[Worker]:
    """A process that has a program and waits to be told to run it; it ends with the block.

    Args:
        code: Its source.
        machine: Has the cells.
        output: Takes what it prints; has all of it when the block has ended.
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
    worker.retire()  # it has answered, and nobody waits for its end


async def outcome_of(worker: Worker, context: RequestContext) -> Outcome:
    """What a program comes to.

    Args:
        worker: Its process.
        context: What it is given.
    """
    try:
        message = await worker.call({}, context)
        return Outcome.model_validate(message["structured"])
    except WorkerEndedError as error:
        return Outcome(error=f"Its process {error}.")
    except (KeyError, ValidationError):
        return Outcome(error="Its process answered with something else than a result.")
