"""Programs that run in the background, until they end or the server does."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import anyio

from tools.core.errors import NotFoundError, RateLimitedError
from tools.sandbox.processes.explanations import LOOKED_AT
from tools.sandbox.processes.launching.program import Completed, communicate
from tools.sandbox.processes.models import Command, Level
from tools.sandbox.processes.output import RecentOutput

if TYPE_CHECKING:
    from tools.sandbox.processes.launching.program import Program
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.secrets.redaction import Redaction

MOST_RUNNING = 16
"""Jobs of one user that run at the same time."""

MOST_ENDED = 50
"""Jobs of one user that have ended and can still be asked about."""

KEPT_BYTES = 524_288
"""Bytes that are kept of a job's output, the last ones."""

MOST_SECONDS = 86_400.0
"""How long a job may run."""


class Job:
    """One program in the background.

    Args:
        user_id: Its owner.
        session: In whose session it was started.
        program: The program.
        explain: Says why it failed, by its exit code and the end of its output.
        redaction: Takes the values of secrets out of what it writes.

    Attributes:
        id: Its identifier, which cannot be guessed.
        user_id: Its owner.
        session: In whose session it was started.
        output: What it wrote last, output and errors as they came.
        returned: Bytes of its output that were returned to the client already.
    """

    def __init__(
        self,
        user_id: str,
        session: tuple[str, ...],
        program: Program,
        explain: Callable[[int, str], tuple[str, ...]],
        redaction: Redaction,
    ) -> None:
        self.id = secrets.token_hex(8)
        self.user_id = user_id
        self.session = session
        self.output = RecentOutput(KEPT_BYTES)
        self.returned = 0
        self._program = program
        self._explain = explain
        self._explained: tuple[str, ...] = ()
        self._redaction = redaction
        self._completed: Completed | None = None
        self._ended = anyio.Event()

    @property
    def is_running(self) -> bool:
        """Whether anything of it is left."""
        return not self._ended.is_set()

    @property
    def timed_out(self) -> bool:
        """Whether it was ended because it ran for too long."""
        return self._completed is not None and self._completed.timed_out

    @property
    def exit_code(self) -> int | None:
        """As a shell has it; None while it runs."""
        return None if self._completed is None else self._completed.exit_code

    @property
    def level(self) -> Level:
        """What confines it."""
        return self._program.level

    @property
    def notes(self) -> tuple[str, ...]:
        """What else to know."""
        return (*self._program.notes, *self._explained)

    async def kill(self) -> None:
        """Ends it with all that it has started; returns when nothing is left."""
        await self._program.kill()
        await self._ended.wait()

    async def run(self) -> None:
        """Reads what it writes until it has ended."""
        out, err = (self._redaction.sink(self.output.feed) for _ in range(2))
        try:
            self._completed = await communicate(
                self._program, out.feed, err.feed, seconds=MOST_SECONDS
            )
            out.flush()
            err.flush()
            if not self._completed.timed_out:
                end = self.output.part(-LOOKED_AT, LOOKED_AT, is_complete=True).text
                self._explained = self._explain(self._completed.exit_code, end)
        finally:
            self._ended.set()


class Jobs:
    """Every user's jobs; close it with `aclose`.

    Args:
        processes: Starts them.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._jobs: dict[str, Job] = {}
        self._starting: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, user_id: str, command: Command) -> Job:
        """Starts a program that goes on when the call has been answered.

        Raises:
            RateLimitedError: Too many jobs of the user run.
        """
        running = [job.id for job in self._of(user_id) if job.is_running]
        if len(running) + self._starting[user_id] >= MOST_RUNNING:
            raise RateLimitedError(
                f"{MOST_RUNNING} jobs are running already, which is the limit.",
                next_actions=[f"Wait until one has ended, or end one with bash_kill: {running}."],
            )
        self._starting[user_id] += 1
        try:
            program = await self._processes.start(command)
            explain = partial(self._processes.explain, program)
            redaction = self._processes.secrets.redaction
            job = Job(user_id, command.session, program, explain, redaction)
        finally:
            self._starting[user_id] -= 1
        self._jobs[job.id] = job
        task = asyncio.create_task(self._run(job))  # no call's task group: it outlives the call
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def find(self, user_id: str, job_id: str) -> Job:
        """Returns the user's job of that id.

        Raises:
            NotFoundError: The user has none; another user's is treated as missing.
        """
        job = self._jobs.get(job_id)
        if job is None or job.user_id != user_id:
            raise NotFoundError(
                f"There is no job {job_id!r}; the last {MOST_ENDED} that ended are kept, until "
                "the server ends.",
                suggestions=[job.id for job in self._of(user_id) if job.is_running],
                next_actions=["Give the job_id that bash answered with run_in_background=true."],
            )
        return job

    async def end_session(self, session: tuple[str, ...]) -> None:
        """Ends what was started in a session."""
        await _end(job for job in self._jobs.values() if job.session == session)

    async def aclose(self) -> None:
        """Ends all jobs."""
        await _end(self._jobs.values())

    async def _run(self, job: Job) -> None:
        try:
            await job.run()
        finally:
            self._jobs[job.id] = self._jobs.pop(job.id)  # behind those that ended before
            self._remove_oldest(job.user_id)

    def _of(self, user_id: str) -> list[Job]:
        """Returns the user's jobs; those that ended in the order in which they did."""
        return [job for job in self._jobs.values() if job.user_id == user_id]

    def _remove_oldest(self, user_id: str) -> None:
        ended = [job for job in self._of(user_id) if not job.is_running]
        for job in ended[:-MOST_ENDED]:
            del self._jobs[job.id]


async def _end(jobs: Iterable[Job]) -> None:
    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as group:
            for job in jobs:
                if job.is_running:
                    group.start_soon(job.kill)
