"""Manages the jobs of this process, and reads those of other processes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from storage.agent.jobs import JobRecord, JobState
from storage.errors import StorageError
from storage.locks import Presence
from storage.models import Identity
from tools.core.client import ProgressReporter
from tools.core.errors import NotFoundError
from tools.core.jobs.job import Job, Outcome

if TYPE_CHECKING:
    from storage.library import Library

PATIENCE = 45.0
"""Seconds after which a call is answered with a job: most clients time out after 60, some after 50.
"""

MOST = 16
"""Maximum jobs of one user at once; the caller waits for further calls."""

BEAT = 0.5
"""Seconds between writes of progress, and checks for cancelled jobs."""

LOOK = 0.25
"""Seconds between checks of another process's job."""

ENDING_SECONDS = 5.0
"""Time limit for a job to end after its cancellation, before the caller is answered."""

SUGGESTED = 5

_logger = logging.getLogger("toolcrib")


class Jobs:
    """The jobs of all users.

    Args:
        patience: Seconds after which a call is answered with a job.
        on_lost: Called in a thread when a process with jobs was found dead.
    """

    def __init__(
        self,
        library: Library,
        patience: float = PATIENCE,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.patience = patience
        self._on_lost = on_lost
        self._library = library
        self._presence = Presence(library.directory / "processes")
        self._group: TaskGroup | None = None
        self._kept: dict[str, Job] = {}
        self._any = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Lets calls continue in the background until the block ends, which cancels them."""
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                group.start_soon(self._watch)
                yield
                self._group = None
                group.cancel_scope.cancel()
        finally:
            self._group = None
            self._presence.end()

    @property
    def is_running(self) -> bool:
        """Returns whether calls can continue in the background."""
        return self._group is not None

    async def patiently(
        self, job: Job, work: Callable[[], Awaitable[Outcome]], patience: float
    ) -> JobRecord | None:
        """Runs the work of a call, and waits for it.

            patience: Seconds after which it may continue in the background.

        Returns:
            None once it has ended; its record if it continues in the background.
        """
        if self._group is None:
            raise RuntimeError("Calls can become jobs only within Jobs.running().")
        self._group.start_soon(self._run, job, work)
        try:
            with anyio.move_on_after(patience):
                await job.ended.wait()
            while not (job.ended.is_set() or _may_be_left(job)):
                with anyio.move_on_after(LOOK):
                    await job.changed.wait()
            if not job.ended.is_set() and (record := await self._keep(job)) is not None:
                return record
            await job.ended.wait()
        except anyio.get_cancelled_exc_class():
            job.cancel()
            with anyio.CancelScope(shield=True):
                await job.ended.wait()
                if self._kept.pop(job.id, None) is not None:
                    await anyio.to_thread.run_sync(self._library.jobs.remove, job.id)
            raise
        return None

    async def find(self, identity: Identity, job_id: str) -> JobRecord:
        """Returns the current record of a job."""
        job = self.here(identity, job_id)
        if job is not None:
            return job.record(self._presence.name)
        return await anyio.to_thread.run_sync(self._stored, identity, job_id)

    def here(self, identity: Identity, job_id: str) -> Job | None:
        """Returns a job of this process; None if it belongs to another process or has ended."""
        job = self._kept.get(job_id)
        return job if job is not None and job.identity == identity else None

    async def follow(
        self,
        identity: Identity,
        job_id: str,
        *,
        seconds: float,
        report: ProgressReporter,
        relay: object,
    ) -> JobRecord:
        """Waits until a job ends or has a question without an answer, or for `seconds`.

        Args:
            seconds: Maximum time to wait.
            relay: Access to the client, which gets the job's questions.

            AnswersAwaitedError: If the client must answer first, and then repeats the call.
        """
        until = anyio.current_time() + seconds
        told = None
        while True:
            record = await self.find(identity, job_id)
            if record.state is not JobState.WORKING:
                return record
            job = self.here(identity, job_id)
            if record.awaits and not (job is not None and await _put_questions(job, relay)):
                return record
            if anyio.current_time() >= until:
                return record
            if record.progress.done is not None and record.progress != told:
                told = record.progress
                await report(record.progress.done, told.total, told.message or None)
            with anyio.move_on_after(min(LOOK, max(until - anyio.current_time(), 0))):
                await (anyio.sleep_forever() if job is None else job.changed.wait())

    async def cancel(self, identity: Identity, job_id: str) -> JobRecord:
        """Cancels a job in whichever process it runs; returns its record."""
        job = self.here(identity, job_id)
        if job is not None:
            job.cancel()
        else:
            await self.find(identity, job_id)
            await anyio.to_thread.run_sync(self._library.jobs.want_cancelled, identity, job_id)
        with anyio.move_on_after(ENDING_SECONDS):
            while (await self.find(identity, job_id)).state is JobState.WORKING:  # noqa: ASYNC110  # another process may work on it
                await anyio.sleep(LOOK)
        return await self.find(identity, job_id)

    async def end_session(self, session_id: str) -> None:
        """Cancels a session's jobs in this process, and waits for their end."""
        left = [job for job in self._kept.values() if job.session_id == session_id]
        for job in left:
            job.cancel()
        with anyio.move_on_after(ENDING_SECONDS):
            for job in left:
                await job.ended.wait()

    async def _keep(self, job: Job) -> JobRecord | None:
        """Moves a call to the background; returns None if it has ended or cannot."""
        user_id = job.identity.user_id
        if sum(each.identity.user_id == user_id for each in self._kept.values()) >= MOST:
            return None
        self._kept[job.id] = job
        record = job.record(self._presence.name)
        try:
            await anyio.to_thread.run_sync(self._add, record)
        except (StorageError, OSError) as error:
            _logger.warning("A long call cannot become a job, so its client waits: %s", error)
            del self._kept[job.id]
            return None
        if job.ended.is_set():
            await anyio.to_thread.run_sync(self._library.jobs.remove, job.id)
            self._kept.pop(job.id, None)
            return None
        job.is_kept = True
        job.asking.leave()
        self._any.set()
        return record

    def _add(self, record: JobRecord) -> None:
        self._presence.begin()
        self._library.jobs.add(record)

    async def _run(self, job: Job, work: Callable[[], Awaitable[Outcome]]) -> None:
        try:
            await job.run(work)
        finally:
            if job.is_kept:
                with anyio.CancelScope(shield=True):
                    await self._end(job)

    async def _end(self, job: Job) -> None:
        """Stores the outcome of a job; if that fails, only this process has it."""
        if job.error is not None:
            _logger.error("A job failed: %s", job.error, exc_info=job.error)
        try:
            record = job.record(self._presence.name)
            await anyio.to_thread.run_sync(self._library.jobs.end, record)
        except StorageError as error:
            _logger.warning(
                "The outcome of a job could not be stored and is lost when Toolcrib ends: %s", error
            )
        else:
            del self._kept[job.id]

    async def _watch(self) -> None:
        """Stores the progress of jobs, and cancels those that another process wants cancelled."""
        written: dict[str, JobRecord] = {}
        while True:
            await self._any.wait()
            while self._kept:
                await anyio.sleep(BEAT)
                records = [job.record(self._presence.name) for job in self._kept.values()]
                news = [each for each in records if written.get(each.id) != each]
                written = {each.id: each for each in records}
                try:
                    unwanted = await anyio.to_thread.run_sync(self._beat, news)
                except StorageError as error:
                    _logger.warning("The progress of jobs could not be stored: %s", error)
                    continue
                for each in unwanted:
                    if (job := self._kept.get(each)) is not None:
                        job.cancel()
            self._any = anyio.Event()

    def _beat(self, news: list[JobRecord]) -> list[str]:
        if news:
            self._library.jobs.beat(news)
        return self._library.jobs.unwanted(self._presence.name)

    def _stored(self, identity: Identity, job_id: str) -> JobRecord:
        """Returns a stored job, and marks it as lost if its process died."""
        jobs = self._library.jobs
        found = jobs.find(identity, job_id)
        if found is not None and found.state is JobState.WORKING and self._has_died(found.process):
            jobs.lose(found.process)
            self._on_lost()
            found = jobs.find(identity, job_id)
        if found is None:
            raise NotFoundError(
                f"You have no task {job_id!r}; results are kept for a day.",
                suggestions=[each.id for each in jobs.latest(identity, SUGGESTED)],
                next_actions=["Take the id that the call was answered with, or make it again."],
            )
        return found

    def _has_died(self, process: str) -> bool:
        return process != self._presence.name and not self._presence.is_alive(process)


def _may_be_left(job: Job) -> bool:
    return job.lasting.is_set() and not job.asking.is_with_client


async def _put_questions(job: Job, relay: object) -> bool:
    """Asks a client a job's questions until they are answered; returns whether they were."""
    answered = False

    async def ask() -> None:
        nonlocal answered
        answered = await job.asking.put(relay)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        while job.asking.awaits and not job.ended.is_set():
            with anyio.move_on_after(LOOK):
                await job.changed.wait()
        answered = True
        group.cancel_scope.cancel()
    return answered
