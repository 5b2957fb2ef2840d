"""Programs in the background, which run until they or the server end."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import anyio

from tools.core.errors import NotFoundError, RateLimitedError
from tools.sandbox.processes.explanations import LOOKED_AT
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.output import Completed, RecentOutput, communicate

if TYPE_CHECKING:
    from tools.sandbox.processes.output import Program
    from tools.sandbox.processes.processes import Processes

MOST_RUNNING = 16  # limit on the running jobs of a user
MOST_ENDED = 50  # limit on the finished jobs of a user that can still be queried
KEPT_BYTES = 524_288  # limit on the output kept of a job; older output is discarded
MOST_SECONDS = 86_400.0  # time limit of a job


class Job:
    """A program in the background."""

    def __init__(
        self, user_id: str, session: tuple[str, ...], program: Program, processes: Processes
    ) -> None:
        self.id = secrets.token_hex(8)  # its ID, which cannot be guessed
        self.user_id = user_id
        self.session = session
        self.output = RecentOutput(KEPT_BYTES)  # the end of its output and errors, interleaved
        self.returned = 0  # bytes of its output already returned to the client
        self.level = program.level
        self._program = program
        self._processes = processes
        self._explained: tuple[str, ...] = ()
        self._completed: Completed | None = None
        self._ended = anyio.Event()

    @property
    def is_running(self) -> bool:
        """True until all its processes have ended."""
        return not self._ended.is_set()

    @property
    def timed_out(self) -> bool:
        """True if it was killed for running too long."""
        return self._completed is not None and self._completed.timed_out

    @property
    def exit_code(self) -> int | None:
        """As a shell reports it; None while it runs."""
        return None if self._completed is None else self._completed.exit_code

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of its output."""
        return (*self._program.notes, *self._explained)

    async def kill(self) -> None:
        """Kills it with all its child processes; returns when none is left."""
        await self._program.kill()
        await self._ended.wait()

    async def run(self) -> None:
        """Reads its output until it has ended."""
        out, err = (self._processes.secrets.redaction.sink(self.output.feed) for _ in range(2))
        try:
            self._completed = await communicate(
                self._program, out.feed, err.feed, seconds=MOST_SECONDS
            )
            out.flush()
            err.flush()
            if not self._completed.timed_out:
                end = self.output.part(-LOOKED_AT, LOOKED_AT, is_complete=True).text
                code = self._completed.exit_code
                self._explained = self._processes.explain(self._program, code, end)
        finally:
            self._ended.set()


class Jobs:
    """The jobs of all users; close it with `aclose`."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._jobs: dict[str, Job] = {}
        self._starting: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, user_id: str, command: Command) -> Job:
        """Starts a program that continues after the call has been answered."""
        running = [job.id for job in self._of(user_id) if job.is_running]
        if len(running) + self._starting[user_id] >= MOST_RUNNING:
            raise RateLimitedError(
                f"{MOST_RUNNING} jobs are running already, which is the limit.",
                next_actions=[f"Wait until one has ended, or end one with bash_kill: {running}."],
            )
        self._starting[user_id] += 1
        try:
            program = await self._processes.start(command)
            job = Job(user_id, command.session, program, self._processes)
        finally:
            self._starting[user_id] -= 1
        self._jobs[job.id] = job
        task = asyncio.create_task(self._run(job))  # not in a task group, as it outlives the call
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def find(self, user_id: str, job_id: str) -> Job:
        """Returns the user's job with this ID; other users' jobs count as missing."""
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
        """Ends the jobs of a session."""
        await _end(job for job in self._jobs.values() if job.session == session)

    async def aclose(self) -> None:
        """Ends all jobs."""
        await _end(self._jobs.values())

    async def _run(self, job: Job) -> None:
        try:
            await job.run()
        finally:
            self._jobs[job.id] = self._jobs.pop(job.id)  # moves it behind those that ended before
            ended = [each for each in self._of(job.user_id) if not each.is_running]
            for each in ended[:-MOST_ENDED]:
                del self._jobs[each.id]

    def _of(self, user_id: str) -> list[Job]:
        """Returns the user's jobs; finished ones in the order in which they ended."""
        return [job for job in self._jobs.values() if job.user_id == user_id]


async def _end(jobs: Iterable[Job]) -> None:
    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as group:
            for job in jobs:
                if job.is_running:
                    group.start_soon(job.kill)
